/** A stream of numbers that depends only on its seed, on every machine the same. */
export interface Random {
  /** An integer of the range, ends included. */
  readonly int: (from: number, to: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <A>(list: ReadonlyArray<A>) => A
  /** A separate stream: draws from it do not move this stream. */
  readonly fork: (name: string) => Random
}

/** FNV-1a with a final mix, so that neighbouring seeds share nothing. */
const hash = (text: string): number => {
  let h = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1) h = Math.imul(h ^ text.charCodeAt(index), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Mulberry32 over a hash of the text. */
export const make = (text: string): Random => {
  let state = hash(text)
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    int: (from, to) => from + Math.floor(next() * (to - from + 1)),
    chance: (probability) => next() < probability,
    pick: (list) => {
      const one = list[Math.floor(next() * list.length)]
      if (one === undefined) throw new Error("there is nothing to pick from")
      return one
    },
    fork: (name) => make(`${text}/${name}`)
  }
}
