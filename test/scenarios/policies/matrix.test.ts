import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import * as SignMessage from "../../../src/application/endpoints/signing/SignMessage.js"
import * as SignMessages from "../../../src/application/endpoints/signing/SignMessages.js"
import { Policies } from "../../../src/application/ports/Policies.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { endpoints } from "../../support/http/Contract.js"
import { Address, account, type Ports, type Runtime, useStack } from "../../support/stack/Stack.js"

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

interface Judged {
  /** The request's answer or failure, as JSON. */
  readonly ask: (life: Runtime, by: Caller) => Promise<string>
  readonly wallet: () => string
  /** Forms of subjects that its requests cannot have. */
  readonly without?: ReadonlyArray<Form>
}

const textOf = async <R extends Ports>(
  life: Runtime,
  effect: Effect.Effect<unknown, unknown, R>
): Promise<string> =>
  JSON.stringify(
    await life.runPromise(
      Effect.match(effect, { onFailure: (failure) => failure, onSuccess: (answer) => answer })
    ),
    (_, value) => (typeof value === "bigint" ? String(value) : value)
  )

const one = () => stack.predict("one")
const payment = () => stack.transfer("one", to)
const settings = () => stack.settings
const ownless = () => ({ rpc: stack.settings.rpc, entryPoint: stack.settings.entryPoint })

let salts = 0
const newSalt = (): string => `new ${salts}`

const judged: Readonly<Record<string, Judged>> = {
  execute: {
    ask: (life, by) => textOf(life, stack.execute([payment()], {}, by)),
    wallet: one
  },
  estimateGas: {
    ask: (life, by) => textOf(life, EstimateGas.run(by, { operations: [payment()], settings: settings() })),
    wallet: one
  },
  executeEncoded: {
    ask: async (life, by) => {
      const { userOps } = await stack.estimate([payment()])
      return textOf(life, stack.post(userOps, "userOpHash", {}, by))
    },
    wallet: one
  },
  passkeyHash: {
    ask: (life, by) => {
      const operations = [journey.transfer(passkeyWallet, to)]
      return textOf(life, PasskeyHash.run(by, { operations, settings: ownless() }))
    },
    wallet: () => passkeyWallet,
    // No key of the account signs or submits.
    without: ["signer"]
  },
  executePasskey: {
    ask: async (life, by) => {
      const op = await journey.hashed(journey.transfer(passkeyWallet, to))
      return textOf(life, journey.executePasskey(op, phone.get(op.signingHash), { cosigners }, by))
    },
    wallet: () => passkeyWallet
  },
  transactSigner: {
    ask: (life, by) => textOf(life, stack.transact({ to: Address.unsafe(to), value: 1n }, {}, by)),
    wallet: () => stack.signer.address
  },
  create: {
    ask: async (life, by) => {
      salts += 1
      await stack.fund(stack.predict(newSalt()), 10n ** 18n)
      return textOf(life, stack.createWallets([newSalt()], {}, by))
    },
    wallet: () => stack.predict(`new ${salts + 1}`)
  },
  sign: {
    ask: (life, by) => textOf(life, SignMessages.run(by, { messages: ["hello"], signer: settings().signer })),
    wallet: one,
    // It signs for no wallet.
    without: ["wallet", "wallet:*"]
  },
  signMessage: {
    ask: (life, by) => {
      const { entryPoint: _, ...others } = settings()
      const request = { wallet: one(), walletCustody: 1 as const, message: "hello", settings: others }
      return textOf(life, SignMessage.run(by, request))
    },
    wallet: one
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

/** A policy that allows nothing, for these subjects. */
const bind = (life: Runtime, ...subjects: ReadonlyArray<string>) =>
  life.runPromise(
    Effect.gen(function* () {
      const { put } = yield* Policies
      const content = { mode: "enforce", expiresAt: 0, rules: [] } as const
      const entry = {
        accountId: account,
        layer: "account",
        content,
        at: 1,
        by: "tests",
        requestId: null
      } as const
      for (const subject of subjects) yield* put({ ...entry, subject }, null)
    })
  )

const by = (): Caller => {
  const caller = stack.caller()
  return { ...caller, principal: { ...caller.principal, keyId } }
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
      await bind(life, ...new Set(subjects))
      for (const [place, [name, { ask }]] of asked.entries())
        expect([name, await ask(life, by())]).toEqual([
          name,
          expect.stringContaining(`${subjects[place]} version 1, rules: `)
        ])
    })
  )

  it("judged ones are not bound by policies of others", () =>
    stack.living({ database: stack.database() }, async (life) => {
      await bind(life, "key:0123456789ab", `signer:${to}`, `wallet:${to}`)
      for (const [name, { ask }] of Object.entries(judged))
        expect([name, await ask(life, by())]).toEqual([name, expect.not.stringContaining("version 1")])
    }))
})
