"""What pytest loads: the fixture of :mod:`hallujudge.sdk.pytest_plugin`.

pytest looks for a plug-in's modules at the top of its distribution, and all our other packages
begin in ``hallujudge-client``. Without this one it takes the server's ``__main__`` for a module of
the plug-in, and warns.
"""

from hallujudge.integrations.pytest_plugin import fixture as fixture
