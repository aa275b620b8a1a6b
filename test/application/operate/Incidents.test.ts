import { describe, expect, test } from "vitest"
import type { ChainHealth } from "../../../src/application/observe/Health.js"
import * as Incidents from "../../../src/application/operate/Incidents.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Empty from "../../support/admin/Data.js"
import * as Make from "../../support/journal/Make.js"

const now = 1_000_000_000
const eoa = Address.unsafe(`0x${"1".repeat(40)}`)

const profile = NetworkProfile.make({ chainId: 8_453n })

const head = {
  number: 7n,
  hash: Make.word(1),
  timestamp: now / 1_000,
  baseFeePerGas: 1n,
  gasLimit: 30_000_000n
}

const healthy: ChainHealth = {
  profile,
  lowBalance: 10n,
  head,
  headAt: now,
  answeredAt: now,
  answerMillis: 5,
  failing: null,
  eoas: new Map([[eoa, { wei: 10n, at: now }]]),
  deposits: new Map()
}

const facts = (over: Partial<Incidents.Facts> = {}): Incidents.Facts => ({
  ...Empty.facts,
  now,
  chains: [healthy],
  ...over
})

const chain = (over: Partial<ChainHealth>) => facts({ chains: [{ ...healthy, ...over }] })

const kindsOf = (given: Incidents.Facts) => Incidents.of(given).map(({ kind, level }) => `${kind} ${level}`)

const silent = { since: now - 20_000, polls: 2, message: "no answer in time" }

const sent = (signedAt: number, versions: number) => ({
  ...Make.lane,
  chainId: profile.chainId,
  nonce: 0n,
  access: { accountId: Make.alice, key: "serviceEoa" as const, rpc: null, trust: "operator" as const },
  state: "signed" as const,
  versions: Array.from({ length: versions }, () => Make.signed(0n)),
  signedAt,
  ops: [],
  direct: null,
  mined: null
})

describe("incidents", () => {
  test("a healthy service has none", () => {
    expect(kindsOf(facts())).toEqual([])
    expect(Incidents.verdictOf(profile.chainId, [])).toBe("moving")
  })

  test.each([
    ["one failed poll after an answer", chain({ failing: { ...silent, polls: 1 } }), []],
    ["two failed polls", chain({ failing: silent }), ["node-silent stops"]],
    [
      "a node that never answered",
      chain({ failing: { ...silent, polls: 1 }, answeredAt: null, head: null }),
      ["node-silent stops"]
    ],
    [
      "a head of 31 seconds",
      chain({ head: { ...head, timestamp: now / 1_000 - 31 } }),
      ["node-behind stops"]
    ],
    [
      "a base fee above the cap",
      chain({ head: { ...head, baseFeePerGas: profile.caps.maxFeePerGas + 1n } }),
      ["fee-cap stops"]
    ],
    ["an empty EOA", chain({ eoas: new Map([[eoa, { wei: 0n, at: now }]]) }), ["eoa-empty stops"]],
    ["a low EOA", chain({ eoas: new Map([[eoa, { wei: 9n, at: now }]]) }), ["eoa-low warns"]],
    [
      "a transaction that waits twice the time of a replacement",
      facts({ transactions: [sent(now - 2 * profile.bumpAfterMillis - 1, 1)] }),
      ["transaction-stalled stops"]
    ],
    [
      "a replaced transaction that waits again",
      facts({ transactions: [sent(now - profile.bumpAfterMillis - 1, 2)] }),
      ["transaction-stalled stops"]
    ],
    [
      "a transaction that was replaced twice",
      facts({ transactions: [sent(now, 3)] }),
      ["transaction-stalled stops"]
    ],
    ["a fresh transaction", facts({ transactions: [sent(now - profile.bumpAfterMillis, 1)] }), []],
    [
      "work that waits for no known reason",
      facts({
        waiting: [{ chainId: profile.chainId, ops: 3, oldestAt: now - 2 * profile.bumpAfterMillis - 60_001 }]
      }),
      ["work-waits warns"]
    ],
    ["a read-only database", facts({ database: { isWritable: false, errors: 0 } }), ["database-fails stops"]],
    ["a failing signer", facts({ failingSigners: new Map([[eoa, 1]]) }), ["signer-fails stops"]],
    [
      "a held request",
      facts({ held: [{ requestId: "r", chainId: profile.chainId }] }),
      ["request-held stops"]
    ],
    ["Redis away", facts({ isRateLimitStoreAway: true }), ["rate-limit-store-gone warns"]],
    ["a doubted clock", facts({ isClockDoubted: true }), ["clock-doubted warns"]],
    [
      "a clock 31 seconds behind a head",
      chain({ head: { ...head, timestamp: now / 1_000 + 31 } }),
      ["clock-doubted warns"]
    ],
    ["a head 30 seconds in the future", chain({ head: { ...head, timestamp: now / 1_000 + 30 } }), []],
    [
      "a clock over an hour ahead of a head that grows",
      chain({ head: { ...head, timestamp: now / 1_000 - 3_601 } }),
      ["node-behind stops", "clock-doubted warns"]
    ],
    [
      "a chain that stopped an hour ago",
      chain({ head: { ...head, timestamp: now / 1_000 - 3_601 }, headAt: now - 3_601_000 }),
      ["node-behind stops"]
    ],
    [
      "a budget at four fifths",
      facts({
        budgets: [
          { accountId: "acme" as AccountId, chainId: profile.chainId, name: "sponsor", spent: 4n, limit: 5n }
        ]
      }),
      ["budget-near warns"]
    ],
    [
      "a failing webhook",
      facts({ failingWebhooks: [{ webhookId: "w", accountId: "acme" }] }),
      ["webhook-failing warns"]
    ]
  ] as const)("%s", (_, given, expected) => {
    expect(kindsOf(given)).toEqual(expected)
  })

  test("lists first the failure that stops work, and marks the chain as stopped, whole or in part", () => {
    const low = { ...chain({ eoas: new Map([[eoa, { wei: 9n, at: now }]]), failing: silent }) }
    expect(kindsOf(low)).toEqual(["node-silent stops", "eoa-low warns"])
    expect(Incidents.verdictOf(profile.chainId, Incidents.of(low))).toBe("stopped")
    expect(Incidents.verdictOf(1n, Incidents.of(low))).toBe("moving")
    const empty = Incidents.of(chain({ eoas: new Map([[eoa, { wei: 0n, at: now }]]) }))
    expect(Incidents.verdictOf(profile.chainId, empty)).toBe("partly")
  })

  test("an incident keeps the time of its beginning while it lasts", () => {
    const found = Incidents.of(chain({ failing: silent }))
    const first = Incidents.date(found, [], 5)
    const second = Incidents.date(found, first, 9)
    expect(second.map(({ since }) => since)).toEqual([5])
    expect(Incidents.begun(second, first)).toEqual([])
    expect(Incidents.begun(second, []).map(({ kind }) => kind)).toEqual(["node-silent"])
    expect(Incidents.date(found, [], 9).map(({ since }) => since)).toEqual([9])
  })
})
