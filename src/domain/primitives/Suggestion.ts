/** The known name closest to a mistyped one, in any case of letters; null: none is near. */
export const closest = (name: string, known: ReadonlyArray<string>): string | null => {
  if (name.length > 40) return null
  let best: string | null = null
  let least = name.length < 4 ? 2 : 3
  for (const candidate of known) {
    const edits = distance(name.toLowerCase(), candidate.toLowerCase())
    if (edits < least) {
      least = edits
      best = candidate
    }
  }
  return best
}

/** `; did you mean name?`, or nothing. */
export const tell = (name: string, known: ReadonlyArray<string>): string => {
  const best = closest(name, known)
  return best === null ? "" : `; did you mean ${best}?`
}

/** Levenshtein: the fewest insertions, deletions and replacements of a character that make one text the other. */
const distance = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
