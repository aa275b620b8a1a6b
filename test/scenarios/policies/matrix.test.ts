import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import * as TransactSigner from "../../../src/application/endpoints/operations/TransactSigner.js"
import * as Evaluate from "../../../src/application/endpoints/policies/Evaluate.js"
import * as SignMessage from "../../../src/application/endpoints/signing/SignMessage.js"
import * as SignMessages from "../../../src/application/endpoints/signing/SignMessages.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Limit, Policy } from "../../../src/domain/policy/Policy.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { endpoints } from "../../support/http/Contract.js"
import { Address, type Ports, type Runtime, useStack } from "../../support/stack/Stack.js"
import * as Policed from "./Policed.js"

/** Each endpoint of the contract is judged by the policies of each subject, or exempt for a reason. */

const phone = Authenticator.make()
let journey: Journey.Journey
let passkeyWallet: Address.Address

const stack = useStack({}, async (stack) => {
  await stack.create("one")
  await stack.mint(stack.predict("one"), 1_000n)
  journey = Journey.make(stack, "v0.7")
  passkeyWallet = await journey.created({
    salt: "passkey",
    walletCustody: 5,
    passkeyPubKey: [phone.spki.toString("base64")]
  })
})

const keyId = "21ca2b88d8bd"
const to = `0x${"77".repeat(20)}`
const cosigners = [{ clientId: "dev", versionId: "1" }]

const forms = ["account", "key", "signer", "wallet", "wallet:*"] as const
type Form = (typeof forms)[number]

/** A valid request, and its use case. */
interface Made {
  readonly request: unknown
  readonly run: (by: Caller) => Effect.Effect<unknown, Failure, Ports>
}

interface Judged {
  readonly make: () => Promise<Made>
  readonly wallet: () => string
  /** Forms of subjects that its requests cannot have. */
  readonly without?: ReadonlyArray<Form>
  /** One request counts 1 in limits of this asset. Absent: it holds nothing. */
  readonly asset?: () => string
}

const asking =
  <Q, R extends Ports>(
    run: (by: Caller, request: Q) => Effect.Effect<unknown, Failure, R>,
    requestOf: () => Q | Promise<Q>
  ): Judged["make"] =>
  async () => {
    const request = await requestOf()
    return { request, run: (by) => run(by, request) }
  }

const textOf = async (life: Runtime, { run }: Made, by: Caller): Promise<string> =>
  JSON.stringify(
    await life.runPromise(
      Effect.match(run(by), { onFailure: (failure) => failure, onSuccess: (answer) => answer })
    ),
    (_, value) => (typeof value === "bigint" ? String(value) : value)
  )

const one = () => stack.predict("one")
const token = () => Address.unsafe(String(stack.token.target))
const pay = (wallet: string, amount = "1") => ({
  ...journey.transfer(wallet, to),
  funcParams: [to, amount]
})
const settings = () => stack.settings
const ownless = () => ({ rpc: stack.settings.rpc, entryPoint: stack.settings.entryPoint })
const walletless = () => ({ rpc: stack.settings.rpc, signer: stack.settings.signer })

let salts = 0
let permits = 0
/** A permit of one token, unlike those before. */
const permit = () => {
  permits += 1
  const fields = ["address owner", "address spender", "uint256 value", "uint256 nonce", "uint256 deadline"]
  return {
    types: {
      Permit: fields.map((each) => {
        const [type = "", name = ""] = each.split(" ")
        return { type, name }
      })
    },
    primaryType: "Permit",
    domain: { name: "Token", version: "1", chainId: stack.anvil.chainId, verifyingContract: token() },
    message: { owner: one(), spender: to, value: 1, nonce: permits, deadline: 1 }
  }
}

const judged: Readonly<Record<string, Judged>> = {
  execute: {
    make: asking(ExecuteOperations.run, () => ({ operations: [pay(one())], settings: settings() })),
    wallet: one,
    asset: token
  },
  estimateGas: {
    make: asking(EstimateGas.run, () => ({ operations: [pay(one())], settings: settings() })),
    wallet: one
  },
  executeEncoded: {
    make: asking(ExecuteEncoded.run, async () => {
      const { userOps } = await stack.estimate([pay(one())])
      const operations = userOps.map((op) => ({
        encodedUserOp: Hex.unsafe(op.encodedUserOp),
        userOpHash: Hex.unsafe32(op.userOpHash),
        walletCustody: 1 as const,
        signature: Hex.unsafe(stack.signer.signingKey.sign(op.userOpHash).serialized)
      }))
      return { operations, settings: settings() }
    }),
    wallet: one,
    asset: token
  },
  passkeyHash: {
    make: asking(PasskeyHash.run, () => ({ operations: [pay(passkeyWallet)], settings: ownless() })),
    wallet: () => passkeyWallet,
    // No key of the account signs or submits.
    without: ["signer"]
  },
  executePasskey: {
    make: asking(ExecutePasskey.run, async () => {
      const { encodedUserOp, signingHash, userOpHash } = await journey.hashed(pay(passkeyWallet))
      const operation = {
        encodedUserOp: Hex.unsafe(encodedUserOp),
        userOpHash: Hex.unsafe32(userOpHash),
        validationData: phone.get(signingHash)
      }
      return { operations: [operation], settings: { ...ownless(), cosigners } }
    }),
    wallet: () => passkeyWallet,
    asset: token
  },
  transactSigner: {
    make: asking(TransactSigner.run, () => ({ to: Address.unsafe(to), value: 1n, settings: walletless() })),
    wallet: () => stack.signer.address,
    asset: () => "native"
  },
  create: {
    make: asking(CreateWallets.run, async () => {
      salts += 1
      const salt = `new ${salts}`
      await stack.fund(stack.predict(salt), 10n ** 18n)
      return { accounts: [{ salt, walletCustody: 1 as const }], settings: settings() }
    }),
    wallet: () => stack.predict(`new ${salts + 1}`),
    asset: () => "ops"
  },
  sign: {
    make: asking(SignMessages.run, () => ({
      messages: [JSON.stringify(permit())],
      eip712: {},
      signer: settings().signer
    })),
    wallet: one,
    // It signs for no wallet.
    without: ["wallet", "wallet:*"],
    asset: token
  },
  signMessage: {
    make: asking(SignMessage.run, () => ({
      wallet: one(),
      walletCustody: 1 as const,
      typedData: permit(),
      settings: walletless()
    })),
    wallet: one,
    asset: token
  }
}

const reads = "it reads"
const registry = "it changes what the account has registered, and signs nothing"
const rules = "it changes the rules themselves, under their own scope"
const exempt: Readonly<Record<string, string>> = {
  predict: reads,
  check: reads,
  read: reads,
  receipt: reads,
  getEvents: reads,
  filterEvent: reads,
  getSigner: reads,
  getBundlerAddress: reads,
  getBundlerAddressByGet: reads,
  listNetworks: reads,
  listRequests: reads,
  getRequest: reads,
  streamEvents: reads,
  listWebhooks: reads,
  getWebhook: reads,
  listDead: reads,
  listWatches: reads,
  getWatch: reads,
  listPolicies: reads,
  getPolicy: reads,
  getPolicyUsage: reads,
  evaluatePolicies: reads,
  getDecisionHook: reads,
  getTopUp: reads,
  openapi: reads,
  docs: reads,
  live: reads,
  ready: reads,
  addEvent: registry,
  addError: registry,
  addWebhook: registry,
  changeWebhook: registry,
  removeWebhook: registry,
  rotateSecret: registry,
  redeliver: registry,
  addWatch: registry,
  changeWatch: registry,
  removeWatch: registry,
  setPolicy: rules,
  removePolicy: rules,
  setDecisionHook: rules,
  removeDecisionHook: rules,
  setTopUp: "its payments are judged when they are due",
  unstuck: "it replaces transactions that were judged, with their payload",
  cancelRequest: "it ends unsigned work"
}

const subjectOf = (form: Form, wallet: string): string =>
  form === "key"
    ? `key:${keyId}`
    : form === "signer"
      ? `signer:${stack.signer.address}`
      : form === "wallet"
        ? `wallet:${wallet}`
        : form

const by = (key = keyId): Caller => {
  const caller = stack.caller()
  return { ...caller, principal: { ...caller.principal, keyId: key } }
}

describe("the endpoints of the contract", () => {
  it("endpoints are judged, or exempt for a reason", () => {
    const declared = [...Object.keys(judged), ...Object.keys(exempt)]
    expect(declared.toSorted()).toEqual(endpoints.map(({ name }) => name).toSorted())
  })

  it.each(forms)("judged ones refuse what the policy of %s does not allow", (form) =>
    stack.living({ database: stack.database() }, async (life) => {
      const asked = Object.entries(judged).filter(([, { without = [] }]) => !without.includes(form))
      expect(asked.length).toBeGreaterThan(5)
      const subjects = asked.map(([, { wallet }]) => subjectOf(form, wallet()))
      for (const subject of new Set(subjects)) await Policed.put(life, subject)
      for (const [place, [name, { make }]] of asked.entries())
        expect([name, await textOf(life, await make(), by())]).toEqual([
          name,
          expect.stringContaining(`${subjects[place]} version 1, rules: `)
        ])
    })
  )

  it("judged ones are not bound by policies of others", () =>
    stack.living({ database: stack.database() }, async (life) => {
      for (const subject of ["key:0123456789ab", `signer:${to}`, `wallet:${to}`])
        await Policed.put(life, subject)
      for (const [name, { make }] of Object.entries(judged))
        expect([name, await textOf(life, await make(), by())]).toEqual([
          name,
          expect.not.stringContaining("version 1")
        ])
    }))

  const all = { name: "all", effect: "allow" } as const
  const kinds = ["native", "erc20.transfer", "erc20.approve", "deploy", "sign.typedData"] as const
  const capOf = (asset: string, max: bigint, per: Limit["per"] = "day") =>
    Policed.cap(stack.anvil.chainId, asset, max, { per })

  it("judged ones do what a dry run of the request says", () =>
    stack.living({ database: stack.database() }, async (life) => {
      const asked = Object.entries(judged).filter(([, { asset }]) => asset !== undefined)
      expect(asked.map(([name]) => `/${name}`).toSorted()).toEqual(Evaluate.endpoints.toSorted())
      const strict = "key:000000000000"
      await Policed.put(life, strict)
      const keyOf = (place: number) => `00000000000${place + 1}`
      for (const [place, [, { asset = token }]] of asked.entries())
        await Policed.put(life, `key:${keyOf(place)}`, {
          rules: [{ ...all, match: { kinds } }],
          limits: [capOf(asset(), 1n)]
        })
      /** The refusal of the dry run, and then that of the request; null: it is done. */
      const both = async (name: string, made: Made, caller: Caller) => {
        const given = { endpoint: `/${name}`, request: made.request } as Evaluate.Request
        const [element] = (await life.runPromise(Evaluate.evaluate(caller, given, "account"))).elements
        const [found] = element?.policies ?? []
        const ground = found?.limit == null ? "rules" : `limit ${found.limit}`
        const foretold = `${found?.subject} version ${found?.version}, ${ground}: ${found?.reason}`
        const done = await life.runPromise(
          Effect.match(made.run(caller), {
            onFailure: ({ code, details }) => `${code} ${details[0]?.message}`,
            onSuccess: () => null
          })
        )
        return [element?.verdict === "refuse" ? `policy_refused ${foretold}` : null, done]
      }
      for (const [place, [name, { make }]] of asked.entries()) {
        const before = await make()
        const unruled = await both(name, before, by(strict.slice(4)))
        expect([name, ...unruled]).toEqual([
          name,
          unruled[1],
          expect.stringContaining(`${strict} version 1, rules: `)
        ])
        const key = keyOf(place)
        expect([name, ...(await both(name, before, by(key)))]).toEqual([name, null, null])
        const over = `policy_refused key:${key} version 1, limit cap: 1 asked, 0 left`
        expect([name, ...(await both(name, await make(), by(key)))]).toEqual([name, over, over])
      }
    }))

  /** The highest amount with the answer of the lowest, found by halving; null: all have one answer. */
  const thresholdOf = async (answerOf: (amount: string) => Promise<string>): Promise<number | null> => {
    let [low, high] = [1, 900]
    const first = await answerOf(String(low))
    if (first === (await answerOf(String(high)))) return null
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if ((await answerOf(String(middle))) === first) low = middle
      else high = middle
    }
    return low
  }

  it.each(["estimateGas", "passkeyHash"] as const)(
    "%s tells a key that reads no number of the operator",
    (name) =>
      stack.living({ database: stack.database() }, async (life) => {
        const selectors = ["transfer(address,uint256)"]
        const ruled = { kinds: ["erc20.transfer"], selectors } as const
        const policies: ReadonlyArray<Partial<Policy>> = [
          { rules: [{ ...all, match: { ...ruled, maxAmount: 300n } }] },
          { rules: [{ ...all, match: { ...ruled, args: [{ index: 1, max: 300n }] } }] },
          { rules: [{ ...all, match: ruled }], limits: [capOf(token(), 300n, "op")] },
          { rules: [{ ...all, match: ruled }], limits: [capOf(token(), 300n, "request")] }
        ]
        const reader = (place: number, layer: string): Caller => {
          const { principal, ...more } = by(`${layer === "operator" ? "a" : "b"}0000000000${place}`)
          return { ...more, principal: { ...principal, scopes: new Set(["read"]) } }
        }
        const layers = ["account", "operator"] as const
        for (const layer of layers)
          for (const [place, policy] of policies.entries())
            await Policed.put(life, `key:${reader(place, layer).principal.keyId}`, policy, layer)
        const answerOf = (caller: Caller, amount: string): Effect.Effect<string, Failure, Ports> =>
          name === "estimateGas"
            ? Effect.map(
                EstimateGas.run(caller, { operations: [pay(one(), amount)], settings: settings() }),
                ({ error }) => String(error)
              )
            : Effect.map(
                PasskeyHash.run(caller, { operations: [pay(passkeyWallet, amount)], settings: ownless() }),
                ({ results }) => String(results[0]?.error)
              )
        const found = (caller: Caller) => thresholdOf((amount) => life.runPromise(answerOf(caller, amount)))
        for (const place of policies.keys()) {
          expect(await found(reader(place, "account"))).toBe(300)
          expect(await found(reader(place, "operator"))).toBeNull()
          const posted = { operations: [pay(one(), "301")], settings: settings() }
          const { code } = await life.runPromise(
            Effect.flip(ExecuteOperations.run(reader(place, "operator"), posted))
          )
          expect(code).toBe("policy_refused")
        }
      })
  )
})
