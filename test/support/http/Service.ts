import { randomBytes } from "node:crypto"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { type AccountId, Accounts, type Principal } from "../../../src/application/ports/Accounts.js"
import { type Allowance, RateLimit } from "../../../src/application/ports/RateLimit.js"
import * as Front from "../../../src/hosts/http/Front.js"
import type { Handlers } from "../../../src/hosts/http/Handlers.js"
import * as Server from "../../../src/hosts/node/Server.js"

export const key = randomBytes(32).toString("hex")
export const pausedKey = randomBytes(32).toString("hex")
export const readOnlyKey = randomBytes(32).toString("hex")

const principal = (id: string, change: Partial<Principal> = {}): Principal => ({
  accountId: id as AccountId,
  name: id,
  tier: "pro",
  scopes: new Set(["read", "write", "sign"]),
  paused: false,
  ...change
})

const principals = new Map([
  [key, principal("acme")],
  [pausedKey, principal("paused", { paused: true })],
  [readOnlyKey, principal("reader", { scopes: new Set(["read"]) })]
])

export const accounts = Layer.succeed(Accounts, {
  authenticate: (given) => Effect.succeed(principals.get(Redacted.value(given)) ?? null)
})

export const unlimited: Allowance = { allowed: true, limit: 300, remaining: 299, resetSeconds: 30 }

export const rateLimit = (allowance: () => Allowance) =>
  Layer.succeed(RateLimit, { take: () => Effect.sync(allowance) })

const transaction = {
  status: 1,
  txHash: `0x${"11".repeat(32)}`,
  cumulativeGasUsed: 21_000,
  gasUsed: 21_000,
  effectiveGasPrice: "1000000000",
  returnData: [],
  logs: [],
  txHashes: [`0x${"11".repeat(32)}`]
}

/** Use cases that answer at once, with values of the contract's shapes. */
export const handlers = {
  predict: (_, request) =>
    Effect.succeed(
      request.accounts.map(({ salt }) => ({ salt, wallet: `0x${"22".repeat(20)}`, error: null }))
    ),
  check: () => Effect.succeed([{ exists: false, wallet: "", salt: "s", error: "invalid salt format" }]),
  create: () =>
    Effect.succeed({
      ...transaction,
      returnData: [
        { "0": { salt: "s", wallet: `0x${"22".repeat(20)}` } },
        { "1": { salt: "t", wallet: "", error: "no" } }
      ]
    }),
  execute: () =>
    Effect.succeed({
      ...transaction,
      status: 4,
      returnData: [
        {
          "0": {
            userOpHash: `0x${"33".repeat(32)}`,
            success: true,
            error: null,
            result: true,
            txHash: transaction.txHash
          }
        },
        { "1": { userOpHash: null, success: false, error: "Panic(17)", result: null, txHash: null } }
      ],
      logs: [
        {
          address: `0x${"44".repeat(20)}`,
          logIndex: 0,
          eventName: "Transfer",
          eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
          args: { from: "0x", to: "0x", value: "1" },
          topics: [],
          data: "0x"
        }
      ]
    }),
  estimateGas: () =>
    Effect.succeed({
      status: 0,
      gas: 100_000,
      userOps: [
        { encodedUserOp: "0x", userOpHash: "0x", signingHash: "0x", bundler: "0x", aggrIndexes: [0] }
      ],
      error: "operation 1: Panic(17)"
    }),
  executeEncoded: () => Effect.succeed(transaction),
  receipt: () => Effect.succeed({ requestStatus: 202, receipts: [], pending: [], unknown: ["0x"] }),
  getSigner: () => Effect.succeed({ address: "0x", publicKey: "04", type: "PRIVATE_KEY" as const }),
  getBundlerAddress: () => Effect.succeed({ address: "0x" }),
  getBundlerAddressByGet: () => Effect.succeed({ address: "0x" })
} satisfies Handlers

export interface Started {
  readonly url: string
  readonly port: number
  readonly front: Front.Front
}

export interface StartOptions {
  readonly handlers?: Partial<Handlers>
  readonly front?: Front.Options
  readonly server?: Partial<Server.Options>
  readonly allowance?: () => Allowance
}

/** The front behind a real node server on a free port, until the scope closes. */
export const start = (options: StartOptions = {}): Effect.Effect<Started, never, Scope.Scope> =>
  Effect.gen(function* () {
    const front = yield* Front.make({ ...handlers, ...options.handlers } as Handlers, options.front).pipe(
      Effect.provide(Layer.merge(accounts, rateLimit(options.allowance ?? (() => unlimited)))),
      Effect.mapInputContext((context: Context.Context<never>) => context as Context.Context<unknown>)
    )
    const { port, url } = yield* Effect.orDie(
      Server.serve(front, { host: "127.0.0.1", port: 0, ...options.server })
    )
    return { url, port, front }
  })

export type { Logger }
