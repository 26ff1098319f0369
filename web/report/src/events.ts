/** Event of the window: the page's data was replaced by newer data. */
export const UPDATED = "hallujudge:updated";
