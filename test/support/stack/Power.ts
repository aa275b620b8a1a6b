import * as Effect from "effect/Effect"
import type { ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import type { LifeOptions } from "./Stack.js"

/** At the `nth` call of a method of the journal: before it, or when its effect is durable. */
export interface Spot {
  readonly step: string
  readonly moment: "before" | "after"
  readonly nth?: number
}

export interface Power {
  /** Wraps that pass no call to the journal or a node, and no reply back, once the power is off. */
  readonly life: Pick<LifeOptions, "wrapJournal" | "wrapChain">
  readonly off: () => void
  readonly failed: Promise<void>
}

const never = Effect.interruptible(Effect.never)

export type Around = <A, E, R>(name: string, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** The service with every effect wrapped by `around`. */
export const wrap = <Service extends object>(service: Service, around: Around): Service =>
  Object.fromEntries(
    Object.entries(service).map(([name, member]: [string, unknown]) => {
      if (Effect.isEffect(member)) return [name, around(name, member)]
      if (typeof member !== "function") return [name, member]
      return [
        name,
        (...args: ReadonlyArray<unknown>) => {
          const made: unknown = member(...args)
          return Effect.isEffect(made) ? around(name, made) : made
        }
      ]
    })
  ) as Service

/** A service whose power fails at a spot, or when it is switched off. */
export const make = (spot?: Spot): Power => {
  let on = true
  let calls = 0
  let fail = () => {}
  const failed = new Promise<void>((resolve) => {
    fail = resolve
  })
  const off = () => {
    on = false
    fail()
  }
  const gate: Around = (_, effect) =>
    Effect.suspend(() =>
      on ? Effect.flatMap(effect, (value) => (on ? Effect.succeed(value) : never)) : never
    )
  const step: Around = (name, effect) =>
    gate(
      name,
      Effect.suspend(() => {
        if (name !== spot?.step) return effect
        calls += 1
        if (calls !== (spot.nth ?? 1)) return effect
        if (spot.moment === "after") return Effect.tap(effect, () => Effect.sync(off))
        off()
        return never
      })
    )
  const clients = new WeakMap<ChainClient, ChainClient>()
  const clientOf = (client: ChainClient): ChainClient => {
    const known = clients.get(client) ?? wrap(client, gate)
    clients.set(client, known)
    return known
  }
  return {
    life: {
      wrapJournal: (journal) => wrap(journal, step),
      wrapChain: ({ connect }) => ({ connect: (url, trust) => Effect.map(connect(url, trust), clientOf) })
    },
    off,
    failed
  }
}
