import * as fc from "fast-check"
import type { Candidate } from "../../../src/application/lanes/worker/rules/Queue.js"
import * as Make from "../journal/Make.js"

export const { entryPoint, otherEntryPoint } = Make

/** A ready op of a separate wallet, which no other op blocks. */
export const candidate = (rest: Partial<Candidate> = {}): Candidate => {
  const opId = rest.opId ?? 1
  return {
    opId,
    requestId: "r",
    index: opId,
    accountId: Make.alice,
    route: entryPoint,
    company: "company",
    dependsOn: [],
    wallet: Make.address(opId),
    key: 0n,
    sequence: 0n,
    exposed: false,
    given: false,
    creates: false,
    calls: true,
    userOpHash: Make.word(opId),
    ...rest
  }
}

/** Ready ops of a few requests, wallets and keys, in the order of acceptance; at most that many. */
export const candidates = (most: number): fc.Arbitrary<ReadonlyArray<Candidate>> =>
  fc
    .array(
      fc.record({
        request: fc.nat(Math.ceil(most / 3)),
        back: fc.uniqueArray(fc.nat(4), { maxLength: 2 }),
        wallet: fc.nat(3),
        key: fc.nat(2),
        skips: fc.boolean(),
        exposed: fc.boolean(),
        given: fc.boolean(),
        creates: fc.boolean(),
        calls: fc.boolean(),
        company: fc.nat(2)
      }),
      { maxLength: most, size: "max" }
    )
    .map((drawn) => {
      const counts = new Map<string, number>()
      const sequences = new Map<string, bigint>()
      return drawn.map(({ back, company, key, request, skips, wallet, ...rest }, opId) => {
        const requestId = `r${request}`
        const index = counts.get(requestId) ?? 0
        counts.set(requestId, index + 1)
        const place = `${company} ${wallet} ${key}`
        // A gap now and then.
        const sequence = (sequences.get(place) ?? 0n) + (skips && rest.exposed ? 1n : 0n)
        sequences.set(place, sequence + 1n)
        return candidate({
          ...rest,
          opId,
          requestId,
          index,
          company: String(company),
          dependsOn: back.map((each) => index - 1 - each).filter((each) => each >= 0),
          wallet: Make.address(100 * company + wallet),
          key: BigInt(key),
          sequence
        })
      })
    })
