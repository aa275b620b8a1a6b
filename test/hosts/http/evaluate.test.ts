import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Evaluate from "../../../src/application/endpoints/policies/Evaluate.js"
import * as Policy from "../../../src/domain/policy/Policy.js"
import * as MemoryService from "../../support/http/MemoryService.js"
import { otherKeyId } from "../../support/http/Service.js"
import { facts, refusal, type Send } from "./InMemory.js"

const { place } = MemoryService
const shop = `0x${"77".repeat(20)}`

const transfer = (amount: string, more: object = {}) => ({
  wallet: place.wallet,
  walletCustody: 1,
  to: place.token,
  funcSignature: "transfer(address,uint256)",
  funcParams: [shop, amount],
  ...more
})

const settings = { rpc: place.rpc, entryPoint: MemoryService.entryPoint, signer: place.signer }
const execute = (...operations: ReadonlyArray<object>) => ({
  endpoint: "/execute",
  request: { operations, settings }
})

const limit = { name: "cap", chain: "31337", asset: place.token, per: "day", max: "150" }
const allow = { name: "small", effect: "allow", match: { kinds: ["erc20.transfer"], maxAmount: "100" } }
const policy = (more: object = {}) => ({
  mode: "enforce",
  expiresAt: 0,
  rules: [{ ...allow, match: { ...allow.match, to: ["list:shops"] } }],
  limits: [limit],
  ...more
})
const shops = { addresses: [shop] }

const fact = facts("/policies")

interface Element {
  readonly verdict: string
  readonly movements: ReadonlyArray<unknown>
  readonly policies: ReadonlyArray<Readonly<Record<string, unknown>>>
}

const evaluate = (send: Send, body: object): Effect.Effect<ReadonlyArray<Element>> =>
  Effect.map(send("/evaluate", body, { method: "POST" }), ({ status, text }) => {
    expect(status, text).toBe(200)
    return JSON.parse(text).elements
  })

const verdicts = (elements: ReadonlyArray<Element>) => elements.map(({ verdict }) => verdict)

describe("POST /policies/evaluate", () => {
  it("judges requests of each endpoint that rules may name, except the service's own", () =>
    expect(Policy.endpoints).toEqual([...Evaluate.endpoints, "/topUp"]))

  fact("judges a request by drafts, element by element, and holds nothing", (send) =>
    Effect.gen(function* () {
      const draft = { policies: { account: policy(), "list:shops": shops } }
      const payments = ["100", "60", "50", "101"].map((amount) => transfer(amount))
      const elements = yield* evaluate(send, { ...execute(...payments), ...draft })
      expect(elements[0]).toEqual({
        index: 0,
        wallet: "0xcAcacaCacacACaCACaCaCACAcacAcaCACacAcAcA",
        movements: [
          {
            kind: "erc20.transfer",
            contract: place.token,
            selector: "0xa9059cbb",
            token: place.token,
            to: shop,
            amount: "100"
          }
        ],
        verdict: "allow",
        policies: [
          {
            subject: "account",
            layer: "account",
            version: null,
            mode: "enforce",
            verdict: "allow",
            rule: null,
            limit: null,
            left: null,
            reason: null
          }
        ]
      })
      // A refused element takes no room.
      expect(verdicts(elements)).toEqual(["allow", "refuse", "allow", "refuse"])
      expect(elements[1]?.policies).toMatchObject([
        { verdict: "refuse", rule: null, limit: "cap", left: "50", reason: "60 asked, 50 left" }
      ])
      expect(elements[3]?.policies).toMatchObject([
        {
          rule: null,
          limit: null,
          left: null,
          reason: `erc20.transfer of 101 to ${shop} is not allowed: maxAmount of rule small does not fit`
        }
      ])
      // Nothing was stored, and nothing held.
      expect(verdicts(yield* evaluate(send, execute(...payments)))).toEqual(Array(4).fill("allow"))
      expect(verdicts(yield* evaluate(send, { ...execute(transfer("100")), ...draft }))).toEqual(["allow"])
    })
  )

  fact("judges by the policies in force, of the key that is named", (send) =>
    Effect.gen(function* () {
      yield* send("/list:shops", shops)
      yield* send(`/key:${otherKeyId}`, policy())
      yield* send("/wallet:*", policy({ mode: "observe", rules: [] }))
      const asked = execute(transfer("101"))
      expect(yield* evaluate(send, asked)).toMatchObject([
        {
          verdict: "allow",
          policies: [{ subject: "wallet:*", version: 1, mode: "observe", verdict: "refuse" }]
        }
      ])
      const named = { ...asked, keyId: otherKeyId }
      expect(yield* evaluate(send, named)).toMatchObject([
        {
          verdict: "refuse",
          policies: [
            { subject: `key:${otherKeyId}`, version: 1 },
            { subject: "wallet:*", mode: "observe" }
          ]
        }
      ])
      const removed = { ...named, policies: { [`key:${otherKeyId}`]: null, "wallet:*": null } }
      expect(yield* evaluate(send, removed)).toMatchObject([{ verdict: "allow", policies: [] }])
    })
  )

  fact("refuses what depends on a refused element", (send) =>
    Effect.gen(function* () {
      const asked = execute(transfer("101"), transfer("1", { dependsOn: 0 }))
      const elements = yield* evaluate(send, { ...asked, policies: { account: policy({ rules: [allow] }) } })
      expect(elements).toMatchObject([
        { verdict: "refuse", policies: [{ verdict: "refuse" }] },
        { verdict: "refuse", policies: [{ verdict: "allow" }] }
      ])
    })
  )

  fact("judges transactions of the signer, without fees", (send) =>
    Effect.gen(function* () {
      const { entryPoint: _, ...direct } = settings
      const native = { name: "wei", effect: "allow", match: { kinds: ["native"] } }
      const fees = { ...limit, name: "gas", asset: "fees", max: "0" }
      const asked = (value: string) => ({
        endpoint: "/transactSigner",
        request: { to: shop, value, settings: direct },
        policies: {
          account: policy({ rules: [native], limits: [fees, { ...limit, asset: "native", per: "op" }] })
        }
      })
      expect(yield* evaluate(send, asked("150"))).toMatchObject([
        { verdict: "allow", movements: [{ kind: "native", token: "native", to: shop, amount: "150" }] }
      ])
      expect(yield* evaluate(send, asked("151"))).toMatchObject([
        { policies: [{ limit: "cap", left: "150" }] }
      ])
    })
  )

  fact("names faults of the inner request, of drafts and of the key", (send) =>
    Effect.gen(function* () {
      const asked = execute(transfer("1"))
      const request = { operations: [transfer("1", { walletCustody: 9 })], settings: { ...settings, x: 1 } }
      const facts: ReadonlyArray<readonly [object, ReadonlyArray<unknown>]> = [
        [
          { ...asked, request },
          [
            "invalid_wallet_custody_type",
            "request.operations[0].walletCustody: expected an integer from 0 to 5, got 9",
            "request.settings.x: unknown field"
          ]
        ],
        [
          execute(transfer("1", { wallet: "0x12" })),
          ["invalid_request", "request.operations[0].wallet: expected an address: 0x and 40 hex digits"]
        ],
        [
          { ...asked, request: { operations: [transfer("1")], settings: { ...settings, rpc: place.noRpc } } },
          ["invalid_rpc", expect.stringContaining("request.settings.rpc: ")]
        ],
        [
          {
            endpoint: "/executeEncoded",
            request: {
              operations: [{ encodedUserOp: "0x", userOpHash: `0x${"11".repeat(32)}`, walletCustody: 1 }],
              settings: { rpc: place.rpc, entryPoint: MemoryService.entryPoint }
            }
          },
          [
            "invalid_request",
            "request.operations[0].signature: either signature or settings.signer is required"
          ]
        ],
        [
          {
            endpoint: "/sign",
            request: { messages: ["hello", "0x11"], hashed: true, signer: place.signer }
          },
          ["invalid_request", "request.messages[0]: expected 32 bytes: 0x and 64 hex digits"]
        ],
        [{ ...asked, endpoint: undefined }, ["invalid_request", "endpoint: endpoint is required"]],
        [
          { ...asked, endpoint: "/unstuck" },
          ["invalid_request", expect.stringMatching(/^endpoint: expected "\/execute" or .*, got "[^"]+"$/)]
        ],
        [
          { ...asked, keyId: "123456789abc" },
          ["invalid_request", "keyId: the account has no key with this id"]
        ],
        [
          { ...asked, policies: { others: null } },
          ["invalid_request", expect.stringContaining("policies.others: expected account, key: ")]
        ],
        [
          { ...asked, policies: { account: shops } },
          [
            "invalid_request",
            "policies.account: a policy holds rules; addresses belong to a subject list:NAME"
          ]
        ],
        [
          { ...asked, policies: { account: policy({ mode: "ask" }) } },
          ["invalid_request", expect.stringContaining("policies.account.mode: ")]
        ]
      ]
      for (const [body, expected] of facts)
        expect(refusal(yield* send("/evaluate", body, { method: "POST" })), JSON.stringify(body)).toEqual([
          400,
          ...expected
        ])
    })
  )
})
