import * as Nonce from "../../domain/erc4337/Nonce.js"
import type { NonceSpace } from "../ports/journal/Requests.js"

/**
 * Nonce keys of ops in preparation in this process. The journal owns the keys of accepted ops. A key chosen here is a guess
 * that acceptance checks and that spares most requests a retry.
 */

/** A journal read; it includes every key released before it began. */
export interface Observation {
  readonly began: number
}

export interface Keys {
  readonly observe: () => Observation
  /** Ends a read whose keys are chosen. */
  readonly end: (observation: Observation) => void
  /** Takes the epoch's lowest service key that neither the journal nor another run in this process uses; null: all are in use. */
  readonly take: (
    space: NonceSpace,
    epoch: bigint,
    used: ReadonlySet<bigint>,
    observation: Observation
  ) => bigint | null
  /** Releases a key when its run ends. If an op was accepted under it, the journal has it. */
  readonly giveBack: (space: NonceSpace, key: bigint) => void
  readonly size: () => number
}

/** Logical time of the release; null: still in use. */
type Taken = number | null

const nameOf = ({ authority, chainId, entryPoint, wallet }: NonceSpace, key: bigint): string =>
  `${chainId} ${authority} ${entryPoint} ${wallet} ${key}`

export const make = (): Keys => {
  const taken = new Map<string, Taken>()
  const observations = new Set<Observation>()
  let time = 0

  /** A read that began before a key's release may miss the op that has the key now. */
  const forget = (): void => {
    const oldest = Math.min(...[...observations].map(({ began }) => began))
    for (const [name, at] of taken) if (at !== null && at <= oldest) taken.delete(name)
  }

  return {
    observe: () => {
      time += 1
      const observation = { began: time }
      observations.add(observation)
      return observation
    },
    end: (observation) => {
      observations.delete(observation)
      forget()
    },
    take: (space, epoch, used, { began }) => {
      const { from, to } = Nonce.inEpoch(Nonce.serviceKeys, epoch)
      for (let key = from; key <= to; key += 1n) {
        if (used.has(key)) continue
        const name = nameOf(space, key)
        const at = taken.get(name)
        if (at !== undefined && (at === null || at > began)) continue
        taken.set(name, null)
        return key
      }
      return null
    },
    giveBack: (space, key) => {
      time += 1
      taken.set(nameOf(space, key), time)
      if (observations.size === 0) forget()
    },
    size: () => taken.size
  }
}
