import * as Effect from "effect/Effect"
import { AbiCoder, Contract, hexlify, id as idOf, randomBytes } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { LaneSlots } from "../../../src/application/lanes/LaneSlot.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Handed from "../../support/stack/Handed.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"

/**
 * An operation is bound to its submitter by tx.origin, and the reentrancy guard of an EntryPoint is its own. Code that runs
 * in a transaction of the submitter could hand its other pending operations to another EntryPoint.
 */

const serviceEoa = keyOf(2).address
const attacker = "attacker" as AccountId
const victim = "victim" as AccountId
/** What the outer call burns while nothing is loaded, so that the nested bundle finds the gas. */
const gasToBurn = "900000"

let stack: Stack
let counter: Address.Address
/** Fees of the nested bundle go there. */
let thief: string
let nester: Contract

beforeAll(async () => {
  stack = await startStack({
    profile: { settledDepth: 3, serviceSubmission: { dailyLoss: 10n ** 17n, maxInFlight: 16 } }
  })
  counter = Address.unsafe(await stack.counter.getAddress())
  await stack.create("outer", "inner", "dependent")
})
afterAll(() => stack.stop())
afterEach(() => stack.provider.send("evm_setAutomine", [true]))

const fresh = (name: string) => idOf(`${name} ${hexlify(randomBytes(8))}`)
const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))
const at = (version: Version) => ({ entryPoint: Address.unsafe(entryPoints[version]) })

const as = (accountId: AccountId): Stack => ({
  ...stack,
  caller: () => {
    const caller = stack.caller()
    return { ...caller, principal: { ...caller.principal, accountId } }
  }
})

const losses = (accountId: AccountId) =>
  stack.ask(
    Effect.flatMap(Budgets, (budgets) =>
      Effect.orDie(
        budgets.figures({ accountId, chainId: BigInt(stack.anvil.chainId), name: "service-eoa" }, Date.now())
      )
    )
  )

const hit = (id: string, salt = "inner", dependsOn?: number): Operation => ({
  salt,
  walletCustody: 1,
  to: counter,
  funcSignature: "hit(bytes32)",
  funcParams: [id],
  ...(dependsOn !== undefined && { dependsOn })
})

const nest = (): Operation => ({
  salt: "outer",
  walletCustody: 1,
  to: Address.unsafe(String(nester.target)),
  funcSignature: "run(uint256)",
  funcParams: [gasToBurn]
})

interface Pooled {
  readonly to: string
  readonly input: string
}
/** Pending transactions of that EOA. */
const pooled = async (eoa: string): Promise<ReadonlyArray<Pooled>> => {
  const { pending } = await stack.provider.send("txpool_content", [])
  const own = Object.entries<Record<string, Pooled>>(pending).find(
    ([from]) => from.toLowerCase() === eoa.toLowerCase()
  )
  return Object.values(own?.[1] ?? {})
}

const waiting = (eoa: string): Promise<number> =>
  stack.ask(
    Effect.map(LaneSlots, (slots) =>
      slots.waiting({ chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(eoa) })
    )
  )

/** The pending bundle for that EntryPoint; null when its work keeps waiting for its turn. */
const pendingBundle = async (eoa: string, entryPoint: string): Promise<string | null> => {
  let found: string | null = null
  let waits = 0
  const isSure = async () => {
    found = (await pooled(eoa)).find(({ to }) => to.toLowerCase() === entryPoint.toLowerCase())?.input ?? null
    waits = (await waiting(eoa)) > 0 ? waits + 1 : 0
    return found !== null || waits > 10
  }
  await expect.poll(isSure, { timeout: 10_000, interval: 30 }).toBe(true)
  return found
}

/** Loads the last op of a bundle, for the thief's profit, in front of whatever else is pending. */
const load = async (bundle: string, inner: Version): Promise<void> => {
  const types = [`${UserOperation.structOf(inner)}[]`, "address"]
  const [ops] = AbiCoder.defaultAbiCoder().decode(types, `0x${bundle.slice(10)}`)
  const stolen = AbiCoder.defaultAbiCoder().encode(types, [ops.slice(-1), thief])
  await nester.getFunction("load").send(entryPoints[inner], bundle.slice(0, 10) + stolen.slice(2), {
    gasLimit: 8_000_000n,
    maxFeePerGas: 400_000_000_000n,
    maxPriorityFeePerGas: 90_000_000_000n
  })
}

const arrange = async (): Promise<void> => {
  thief = hexlify(randomBytes(20))
  nester = new Contract(
    await deploy(stack.faucet, initCode("Nester"), hexlify(randomBytes(32))),
    artifact("Nester").abi,
    keyOf(8).connect(stack.provider)
  )
  await stack.provider.send("evm_setAutomine", [false])
}

/**
 * The attack: the last op of the victim's pending bundle is loaded into the contract that the pending outer transaction
 * calls, in front of it. `victim` begins once the outer one is pending.
 */
const attack = async <A, B>(
  eoa: string,
  inner: Version,
  outer: () => Promise<A>,
  victim: () => Promise<B>
): Promise<readonly [A, B]> => {
  await arrange()
  const first = outer()
  await expect.poll(async () => (await pooled(eoa)).length, { timeout: 10_000 }).toBe(1)
  const second = victim()
  const bundle = await pendingBundle(eoa, entryPoints[inner])
  if (bundle !== null) await load(bundle, inner)
  await stack.provider.send("evm_mine", [])
  await stack.provider.send("evm_setAutomine", [true])
  await stack.provider.send("evm_mine", [])
  // The one that had to wait is sent now.
  return Promise.all([first, second])
}

/** The transaction in which an element of an answer landed. */
const landedIn = async (
  answer: {
    readonly returnData: ReadonlyArray<{ readonly [index: number]: { readonly txHash: string | null } }>
  },
  index = 0
) => stack.provider.getTransaction(String(answer.returnData[index]?.[index]?.txHash))

const isOwn = async (answer: Parameters<typeof landedIn>[0], eoa: string, version: Version) => {
  const transaction = await landedIn(answer)
  expect(transaction?.from).toBe(eoa)
  expect(transaction?.to?.toLowerCase()).toBe(entryPoints[version].toLowerCase())
  expect(await stack.provider.getBalance(thief)).toBe(0n)
}

describe.each(
  entryPointVersions.flatMap((outer) =>
    entryPointVersions.flatMap((inner) => (inner === outer ? [] : [[outer, inner] as const]))
  )
)("an op on EntryPoint %s of one account, beside one on %s of another", (outer, inner) => {
  it("does not take it from the service's EOA: it lands by itself, and its account loses nothing", async () => {
    const id = fresh(`${outer} ${inner}`)
    const mallory = Handed.make(as(attacker), at(outer).entryPoint)
    const bob = Handed.make(as(victim), at(inner).entryPoint)
    const [theirs] = await bob.out([hit(id)])
    if (theirs === undefined) throw new Error("an op was expected")
    const [before, count] = [await stack.provider.getBalance(serviceEoa), await sentBy(serviceEoa)]
    const [, answer] = await attack(
      serviceEoa,
      inner,
      async () => {
        const [own] = await mallory.out([nest()])
        if (own === undefined) throw new Error("an op was expected")
        return stack.ask(mallory.post(own))
      },
      () => stack.ask(bob.post(theirs, { over: theirs.signingHash }))
    )
    expect(answer.status).toBe(1)
    await isOwn(answer, serviceEoa, inner)
    expect(await countOf(id)).toBe(1)
    expect(await sentBy(serviceEoa)).toBe(count + 2)
    expect(await stack.provider.getBalance(serviceEoa)).toBeGreaterThanOrEqual(before)
    expect(await losses(victim)).toEqual({ held: 0n, booked: 0n })
    expect(await losses(attacker)).toEqual({ held: 0n, booked: 0n })
  })
})

const sentBy = (eoa: string): Promise<number> => stack.provider.getTransactionCount(eoa)

describe.each(entryPointVersions)(
  "a transaction of the signer itself, beside an op on EntryPoint %s",
  (inner) => {
    it("does not run it for whom it calls", async () => {
      const id = fresh(`direct ${inner}`)
      const { rpc, signer } = stack.settings
      const [own, answer] = await attack(
        stack.signer.address,
        inner,
        () =>
          stack.ask(
            TransactSigner.run(stack.caller(), {
              to: Address.unsafe(String(nester.target)),
              funcSignature: "run(uint256)",
              funcParams: [gasToBurn],
              settings: { rpc, signer }
            })
          ),
        () =>
          stack.ask(
            ExecuteOperations.run(stack.caller(), {
              operations: [hit(id)],
              settings: { ...stack.settings, ...at(inner) }
            })
          )
      )
      expect([own.status, answer.status]).toEqual([1, 1])
      await isOwn(answer, stack.signer.address, inner)
      expect(await countOf(id)).toBe(1)
    })

    it("waits for one that is pending, and both land", async () => {
      const id = fresh(`direct after ${inner}`)
      const { rpc, signer } = stack.settings
      const to = Address.unsafe(hexlify(randomBytes(20)))
      await stack.provider.send("evm_setAutomine", [false])
      const first = stack.ask(
        ExecuteOperations.run(stack.caller(), {
          operations: [hit(id)],
          settings: { ...stack.settings, ...at(inner) }
        })
      )
      const eoa = stack.signer.address
      await expect.poll(async () => (await pooled(eoa)).length, { timeout: 10_000 }).toBe(1)
      const second = stack.ask(
        TransactSigner.run(stack.caller(), { to, value: 1n, settings: { rpc, signer } })
      )
      await expect.poll(() => waiting(eoa), { timeout: 10_000 }).toBe(1)
      expect((await pooled(eoa)).length).toBe(1)
      await stack.provider.send("evm_mine", [])
      await expect
        .poll(async () => (await pooled(eoa)).map((each) => each.to.toLowerCase()))
        .toEqual([to.toLowerCase()])
      await stack.provider.send("evm_mine", [])
      expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([1, 1])
      expect(await countOf(id)).toBe(1)
    })
  }
)

describe("an op that depends on another one", () => {
  it("is not burned alone by an op on another EntryPoint: both land, in one transaction", async () => {
    const [one, two] = [fresh("one"), fresh("two")]
    const [, answer] = await attack(
      stack.signer.address,
      "v0.7",
      () =>
        stack.ask(
          ExecuteOperations.run(stack.caller(), {
            operations: [nest()],
            settings: { ...stack.settings, ...at("v0.6") }
          })
        ),
      () =>
        stack.ask(
          ExecuteOperations.run(stack.caller(), {
            operations: [hit(one), hit(two, "dependent", 0)],
            settings: { ...stack.settings, ...at("v0.7") }
          })
        )
    )
    expect(answer.status).toBe(1)
    await isOwn(answer, stack.signer.address, "v0.7")
    expect((await landedIn(answer, 1))?.hash).toBe((await landedIn(answer, 0))?.hash)
    expect([await countOf(one), await countOf(two)]).toEqual([1, 1])
  })
})

describe("a reorganisation that takes back what was confirmed", () => {
  it("lets the attack through, and the loss is the attacker's", async () => {
    const id = fresh("reorganised")
    const mallory = Handed.make(as(attacker), at("v0.6").entryPoint)
    const bob = Handed.make(as(victim), at("v0.7").entryPoint)
    await arrange()
    const [own] = await mallory.out([nest()])
    const [theirs] = await bob.out([hit(id)])
    if (own === undefined || theirs === undefined) throw new Error("ops were expected")
    const before = await stack.provider.send("evm_snapshot", [])
    const first = stack.ask(mallory.post(own))
    await expect.poll(async () => (await pooled(serviceEoa)).length, { timeout: 10_000 }).toBe(1)
    await stack.provider.send("evm_mine", [])
    expect((await first).status).toBe(1)
    const second = stack.ask(bob.post(theirs, { over: theirs.signingHash }))
    const bundle = await pendingBundle(serviceEoa, entryPoints["v0.7"])
    if (bundle === null) throw new Error("a bundle was expected")
    const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(serviceEoa) }
    const open = await stack.ask(
      Effect.orDie(
        Effect.flatMap(TransactionJournal, (transactionJournal) => transactionJournal.openOf(lane))
      )
    )
    await stack.provider.send("evm_revert", [before])
    await load(bundle, "v0.7")
    // The node may have kept it.
    for (const { versions } of open)
      for (const { raw } of versions)
        await stack.provider.send("eth_sendRawTransaction", [raw]).catch(() => null)
    await stack.provider.send("evm_mine", [])
    const answer = await second
    expect(answer.status).toBe(1)
    expect((await landedIn(answer))?.to?.toLowerCase()).toBe(entryPoints["v0.6"].toLowerCase())
    expect(await countOf(id)).toBe(1)
    expect(await stack.provider.getBalance(thief)).toBeGreaterThan(0n)
    expect((await losses(victim)).booked + (await losses(victim)).held).toBe(0n)
    expect((await losses(attacker)).held).toBeGreaterThan(0n)
    await stack.provider.send("anvil_mine", ["0x5"])
    await expect.poll(async () => (await losses(attacker)).booked).toBeGreaterThan(0n)
    expect(await losses(victim)).toEqual({ held: 0n, booked: 0n })
  })
})
