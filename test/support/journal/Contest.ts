/** Rounds per contender; `available` is the wei at stake. */
export const rounds = 60
export const available = 40
