/** Rounds that each contender plays, and the wei that they play for. */
export const rounds = 60
export const available = 40
