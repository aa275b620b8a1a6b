import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { hashMessage, id, TypedDataEncoder, verifyTypedData } from "ethers"
import { describe, expect, it } from "vitest"
import * as SignMessage from "../../../src/application/endpoints/signing/SignMessage.js"
import * as SignMessages from "../../../src/application/endpoints/signing/SignMessages.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import type { Limit, Rule } from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { type Ports, type Runtime, useStack } from "../../support/stack/Stack.js"
import * as Policed from "./Policed.js"

const stack = useStack({}, async (stack) => {
  await stack.create("one")
})

const keyId = "0123456789ab"
const [router, stranger] = ["11", "22"].map((each) => Address.unsafe(`0x${each.repeat(20)}`))
const chain = (): string => String(stack.anvil.chainId)
const usdc = () => String(stack.token.target)
const domain = () => ({
  name: "USD Coin",
  version: "2",
  chainId: stack.anvil.chainId,
  verifyingContract: usdc()
})

const permitTypes = {
  Permit: ["address owner", "address spender", "uint256 value", "uint256 nonce", "uint256 deadline"].map(
    (each) => ({ type: each.split(" ")[0] ?? "", name: each.split(" ")[1] ?? "" })
  )
}
const permit = (spender: string | undefined, value: number, nonce = 0) => ({
  types: permitTypes,
  primaryType: "Permit",
  domain: domain(),
  message: { owner: stack.signer.address, spender: String(spender), value, nonce, deadline: 1 }
})

/** A policy that allows permits for the router; `more`: further rules. */
const policyOf = (limits: ReadonlyArray<Limit>, more: ReadonlyArray<object> = []) => ({
  rules: [
    { name: "permits", match: { kinds: ["sign.typedData"], domains: [{ verifyingContract: usdc() }] } },
    {
      name: "router",
      match: { kinds: ["erc20.approve", "erc20.transfer"], chains: [chain()], to: [router] }
    },
    ...more
  ].map((each) => ({ ...each, effect: "allow" }) as Rule),
  limits
})

const cap = (max: bigint, more: Partial<Limit> = {}) => Policed.cap(stack.anvil.chainId, usdc(), max, more)

const caller = (bound = true) => {
  const { principal, ...more } = stack.caller()
  return { ...more, principal: { ...principal, keyId: bound ? keyId : null } }
}

const sign = (messages: ReadonlyArray<string | object>, more: object = {}, by = caller()) =>
  SignMessages.run(by, {
    messages: messages.map((each) => (typeof each === "string" ? each : JSON.stringify(each))),
    format: "hex",
    signer: stack.settings.signer,
    ...more
  } as SignMessages.Request)

const typed = { eip712: {} }

const signMessage = (more: object, by = caller()) =>
  SignMessage.run(by, {
    salt: "one",
    walletCustody: 1,
    ...more,
    settings: { rpc: stack.settings.rpc, signer: stack.settings.signer }
  } as unknown as SignMessage.Request)

/** A life with policies. */
const ruled = (body: (life: Runtime, digests: ReadonlyArray<string>) => Promise<void>) => {
  const digests: Array<string> = []
  return stack.living(
    {
      database: stack.database(),
      wrapSigner: (signer) => ({
        ...signer,
        sign: (digest) => {
          digests.push(digest)
          return signer.sign(digest)
        }
      })
    },
    (life) => body(life, digests)
  )
}

/** The refusal of a request; null: it is done. */
const refusalOf = async <A, R extends Ports>(life: Runtime, effect: Effect.Effect<A, Failure, R>) => {
  const exit = await life.runPromiseExit(Effect.flip(effect))
  return Exit.isSuccess(exit) ? exit.value : null
}

const errorsOf = async (life: Runtime, asked: ReturnType<typeof sign>) => {
  const [element] = await life.runPromise(asked)
  return element?.errors ?? null
}

const refused = (rules: string) => ({
  code: "policy_refused",
  details: [
    expect.objectContaining({
      subject: `key:${keyId}`,
      version: "1",
      message: `key:${keyId} version 1, ${rules}`
    })
  ]
})

describe("a key with rules", () => {
  it("signs no hash, no message and no permit for a stranger", () =>
    ruled(async (life, digests) => {
      await Policed.put(life, `key:${keyId}`, policyOf([]))
      expect(await refusalOf(life, sign([id("a")], { hashed: true }))).toMatchObject(
        refused("rules: sign.hash is not allowed")
      )
      expect(await refusalOf(life, sign(["hello"]))).toMatchObject(
        refused("rules: sign.message is not allowed")
      )
      const stolen = refused(
        `rules: erc20.approve of 1 to ${stranger} is not allowed: to of rule router does not fit`
      )
      expect(await refusalOf(life, sign([permit(stranger, 1)], typed))).toMatchObject(stolen)
      expect(await refusalOf(life, signMessage({ typedData: permit(stranger, 1) }))).toMatchObject(stolen)
      expect(await refusalOf(life, signMessage({ message: "hello" }))).toMatchObject(
        refused("rules: sign.message is not allowed")
      )
      expect(digests).toEqual([])
      // Another key is not bound.
      await life.runPromise(sign(["hello"], {}, caller(false)))
      await life.runPromise(signMessage({ message: "hello" }, caller(false)))
      expect(digests).toHaveLength(2)
      expect(digests[0]).toBe(hashMessage("hello"))
    }))

  it("signs permits within its limit, each once, and refuses only the elements beyond it", () =>
    ruled(async (life, digests) => {
      await Policed.put(life, `key:${keyId}`, policyOf([cap(150n)]))
      const [first, second, third] = [permit(router, 100), permit(router, 100, 1), permit(router, 50, 2)]
      const digestOf = ({ message }: typeof first) => TypedDataEncoder.hash(domain(), permitTypes, message)
      const [element] = await life.runPromise(sign([first, second, first, permit(stranger, 1)], typed))
      expect(element?.errors).toEqual([
        null,
        `policy_refused: key:${keyId} version 1, limit cap: 100 asked, 50 left`,
        null,
        `policy_refused: key:${keyId} version 1, rules: erc20.approve of 1 to ${stranger} is not allowed: to of rule router does not fit`
      ])
      expect(verifyTypedData(domain(), permitTypes, first.message, String(element?.signatures[0]))).toBe(
        stack.signer.address
      )
      expect(digests).toEqual([digestOf(first), digestOf(first)])
      // The same permit again, and a further one in the room that is left.
      expect(await errorsOf(life, sign([first, third, second], typed))).toEqual([
        null,
        null,
        `policy_refused: key:${keyId} version 1, limit cap: 100 asked, 0 left`
      ])
      expect(digests).not.toContain(digestOf(second))
      const open = Effect.flatMap(Budgets, (budgets) => budgets.open(BigInt(chain())))
      expect(await life.runPromise(Effect.orDie(open))).toEqual([])
    }))

  it("signs permits of parallel requests within its limit together", () =>
    ruled(async (life, digests) => {
      await Policed.put(life, "account", policyOf([cap(250n, { per: "30d" })]))
      const all = await Promise.all(
        [0, 1, 2, 3, 4].map((nonce) => refusalOf(life, sign([permit(router, 100, nonce)], typed)))
      )
      expect(all.map((failure) => failure?.code ?? "signed").toSorted()).toEqual([
        "policy_refused",
        "policy_refused",
        "policy_refused",
        "signed",
        "signed"
      ])
      expect(digests).toHaveLength(2)
    }))

  it("counts permits without a chain, and refuses those beyond a limit of a request or an operation", () =>
    ruled(async (life) => {
      const { chainId: _, ...nowhere } = domain()
      await Policed.put(
        life,
        `signer:${stack.signer.address}`,
        policyOf(
          [cap(150n, { per: "request" }), cap(120n, { name: "one", per: "op" })],
          [{ name: "any", match: { kinds: ["erc20.approve"], tokens: [usdc()] } }]
        )
      )
      const [one, two, large] = [permit(router, 100), permit(stranger, 100, 1), permit(router, 121, 2)].map(
        (each) => ({ ...each, domain: nowhere })
      )
      expect(await errorsOf(life, sign([one ?? "", two ?? "", large ?? ""], typed))).toEqual([
        null,
        expect.stringContaining("limit cap: 100 asked, 50 left"),
        expect.stringContaining("limit one: 121 asked, 120 left")
      ])
      expect(await errorsOf(life, sign([two ?? ""], typed))).toBeNull()
    }))

  it("keeps the guard of operations, and needs a rule for hashes beyond it", () =>
    ruled(async (life, digests) => {
      await Policed.put(
        life,
        `key:${keyId}`,
        policyOf([], [{ name: "all", match: { kinds: ["sign.message"] } }])
      )
      const own = { ...permit(router, 1), domain: { ...domain(), name: "castellan" } }
      const guard = "looks like an operation: set allowOperationHash"
      expect(await errorsOf(life, sign([id("a"), "a".repeat(32)]))).toEqual([guard, guard])
      expect(await errorsOf(life, sign([own], typed))).toEqual([guard])
      const lifted = { allowOperationHash: true }
      const beyond = refused("rules: sign.hash is not allowed")
      expect(await refusalOf(life, sign([id("a")], lifted))).toMatchObject(beyond)
      expect(await refusalOf(life, sign([own], { ...lifted, ...typed }))).toMatchObject(beyond)
      expect(digests).toEqual([])
      expect(await errorsOf(life, sign(["hello"], lifted))).toBeNull()
    }))
})

describe("rules of a wallet", () => {
  it("bind its messages, and count what it permits", () =>
    ruled(async (life, digests) => {
      await Policed.put(life, "wallet:*", policyOf([cap(150n)]))
      expect(await refusalOf(life, signMessage({ message: "hello" }))).toMatchObject({
        code: "policy_refused",
        details: [{ subject: "wallet:*" }]
      })
      expect(await refusalOf(life, signMessage({ typedData: permit(router, 100) }))).toBeNull()
      expect(await refusalOf(life, signMessage({ typedData: permit(router, 100) }))).toBeNull()
      const over = await refusalOf(life, signMessage({ typedData: permit(router, 100, 1) }))
      expect(over).toMatchObject({ code: "policy_refused", details: [{ limit: "cap", left: "50" }] })
      expect(digests).toHaveLength(2)
      // A key itself signs for no wallet.
      expect(await errorsOf(life, sign(["hello"]))).toBeNull()
    }))

  it("must allow its deployment, in /create and with its first messages", () =>
    ruled(async (life) => {
      const message = (salt: string, typedData: object = permit(router, 1)) =>
        SignMessage.run(caller(), {
          account: { salt, walletCustody: 1 },
          typedData,
          settings: { rpc: stack.settings.rpc, signer: stack.settings.signer }
        } as unknown as SignMessage.Request)
      await stack.fund(stack.predict("new"), 10n ** 18n)
      await Policed.put(life, `key:${keyId}`, policyOf([]))
      const create = () => refusalOf(life, stack.createWallets(["new"], {}, caller()))
      const undeployed = refused(`rules: deploy to ${stack.predict("new")} is not allowed`)
      expect(await refusalOf(life, message("new"))).toMatchObject(undeployed)
      expect(await create()).toMatchObject(undeployed)
      // A document's chain is not the wallet's.
      await Policed.put(
        life,
        `key:${keyId}`,
        policyOf([], [{ name: "new", match: { kinds: ["deploy"], chains: ["1"] } }])
      )
      const mail = {
        types: { Mail: [{ name: "text", type: "string" }] },
        primaryType: "Mail",
        domain: { ...domain(), chainId: 1 },
        message: { text: "a" }
      }
      const changed = { details: [{ version: "2", message: expect.stringContaining("deploy to") }] }
      await expect
        .poll(() => refusalOf(life, message("new", mail)), { timeout: 5_000 })
        .toMatchObject(changed)
      expect(await stack.provider.getCode(stack.predict("new"))).toBe("0x")
      await Policed.put(life, `key:${keyId}`, policyOf([], [{ name: "new", match: { kinds: ["deploy"] } }]))
      await expect.poll(create, { timeout: 5_000 }).toBeNull()
      expect(await stack.provider.getCode(stack.predict("new"))).not.toBe("0x")
      expect(await refusalOf(life, message("other"))).toBeNull()
    }))
})
