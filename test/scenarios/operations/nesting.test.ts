import * as Effect from "effect/Effect"
import { AbiCoder, Contract, hexlify, id as idOf, randomBytes } from "ethers"
import { expect, it } from "vitest"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Handed from "../../support/stack/Handed.js"
import { Address, keyOf, type Stack, useStack } from "../../support/stack/Stack.js"

/**
 * An operation is bound to its submitter by tx.origin, and each EntryPoint has its own reentrancy guard. Code in a
 * transaction of the submitter could hand its other pending operations to another EntryPoint.
 */

const serviceEoa = keyOf(2).address
const attacker = "attacker" as AccountId
const victim = "victim" as AccountId
/** Fees of the nested bundle go there. */
let thief: string
let nester: Contract

const serviceSubmission = { dailyLoss: 10n ** 17n, maxInFlight: 16 }
const stack = useStack({ profile: { settledDepth: 3, serviceSubmission } }, (stack) =>
  stack.create("outer", "inner", "dependent")
)

const at = (version: Version) => ({ entryPoint: Address.unsafe(entryPoints[version]) })
const handedTo = (accountId: AccountId, version: Version) => {
  const caller: Stack["caller"] = () => {
    const own = stack.caller()
    return { ...own, principal: { ...own.principal, accountId } }
  }
  return Handed.make({ ...stack, caller }, at(version).entryPoint)
}
const only = <A>([one]: ReadonlyArray<A>): A => {
  if (one === undefined) throw new Error("one was expected")
  return one
}

const losses = (accountId: AccountId) =>
  stack.ask(
    Effect.flatMap(Budgets, (budgets) =>
      Effect.orDie(
        budgets.figures(
          { accountId, chainId: BigInt(stack.anvil.chainId), name: "service-eoa" },
          Date.now(),
          "day"
        )
      )
    )
  )
const nothingLost = async (...accounts: ReadonlyArray<AccountId>) => {
  for (const account of accounts) expect(await losses(account)).toEqual({ held: 0n, booked: 0n })
}

/** Gas that the outer call burns while no op is loaded, so that the nested bundle finds the gas. */
const running = { funcSignature: "run(uint256)", funcParams: ["900000"] }
const nest = () => stack.pay("outer", String(nester.target), 0n, running)

const waits = (eoa: string): Promise<boolean> =>
  stack.ask(
    Effect.flatMap(OpJournal, (journal) =>
      Effect.map(
        Effect.orDie(journal.ready({ chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(eoa) }, 1)),
        (ops) => ops.length > 0
      )
    )
  )

/** The pending bundle for that EntryPoint; null when its work keeps waiting for its turn. */
const pendingBundle = async (eoa: string, entryPoint: string): Promise<string | null> => {
  let found: string | null = null
  let seen = 0
  const isSure = async () => {
    found =
      (await stack.pool(eoa)).find(({ to }) => to.toLowerCase() === entryPoint.toLowerCase())?.input ?? null
    seen = (await waits(eoa)) ? seen + 1 : 0
    return found !== null || seen > 10
  }
  await expect.poll(isSure, { timeout: 10_000, interval: 30 }).toBe(true)
  return found
}

/** Loads the last op of a bundle, for the thief's profit, in front of all pending transactions. */
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
  await stack.automine(false)
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
  await stack.pooled(1, eoa)
  const second = victim()
  const bundle = await pendingBundle(eoa, entryPoints[inner])
  if (bundle !== null) await load(bundle, inner)
  await stack.mine()
  await stack.automine(true)
  await stack.mine()
  // The transaction that had to wait is sent now.
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
  expect([transaction?.from, transaction?.to]).toEqual([eoa, entryPoints[version]])
  expect(await stack.provider.getBalance(thief)).toBe(0n)
}

it.each([
  ["v0.6", "v0.7"],
  ["v0.7", "v0.8"],
  ["v0.8", "v0.6"]
] as const)(
  "an op on EntryPoint %s of one account does not execute another account's on %s from the service's EOA: it lands by itself, and its account loses nothing",
  async (outer, inner) => {
    const id = idOf(`${outer} ${inner}`)
    const mallory = handedTo(attacker, outer)
    const bob = handedTo(victim, inner)
    const theirs = only(await bob.out([stack.hit("inner", id)]))
    const [before, count] = [await stack.provider.getBalance(serviceEoa), await stack.nonce(serviceEoa)]
    const [, answer] = await attack(
      serviceEoa,
      inner,
      async () => stack.ask(mallory.post(only(await mallory.out([nest()])))),
      () => stack.ask(bob.post(theirs, { over: theirs.signingHash }))
    )
    expect(answer.status).toBe(1)
    await isOwn(answer, serviceEoa, inner)
    expect([await stack.counts(id), await stack.nonce(serviceEoa)]).toEqual([[1], count + 2])
    expect(await stack.provider.getBalance(serviceEoa)).toBeGreaterThanOrEqual(before)
    await nothingLost(victim, attacker)
  }
)

it("a direct transaction of the signer does not run a pending op for its callee", async () => {
  const id = idOf("direct")
  const eoa = stack.signer.address
  const [own, answer] = await attack(
    eoa,
    "v0.7",
    () => stack.ask(stack.transact({ to: Address.unsafe(String(nester.target)), ...running })),
    () => stack.ask(stack.execute([stack.hit("inner", id)]))
  )
  expect([own.status, answer.status]).toEqual([1, 1])
  await isOwn(answer, eoa, "v0.7")
  expect(await stack.counts(id)).toEqual([1])
})

it("a direct transaction of the signer waits for a pending op, and both land", async () => {
  const id = idOf("direct after")
  const eoa = stack.signer.address
  const to = Address.unsafe(hexlify(randomBytes(20)))
  await stack.automine(false)
  const first = stack.ask(stack.execute([stack.hit("inner", id)]))
  await stack.pooled(1)
  const second = stack.ask(stack.transact({ to, value: 1n }))
  await expect.poll(() => waits(eoa), { timeout: 10_000 }).toBe(true)
  expect(await stack.pool()).toHaveLength(1)
  await stack.mine()
  const receivers = async () => (await stack.pool()).map((each) => each.to.toLowerCase())
  await expect.poll(receivers, { timeout: 10_000 }).toEqual([to.toLowerCase()])
  await stack.mine()
  expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([1, 1])
  expect(await stack.counts(id)).toEqual([1])
})

it("a dependent op is not burned by an op on another EntryPoint: both land, in one transaction", async () => {
  const [one, two] = [idOf("one"), idOf("two")]
  const [, answer] = await attack(
    stack.signer.address,
    "v0.7",
    () => stack.ask(stack.execute([nest()], at("v0.6"))),
    () => stack.ask(stack.execute([stack.hit("inner", one), stack.hit("dependent", two, { dependsOn: 0 })]))
  )
  expect(answer.status).toBe(1)
  await isOwn(answer, stack.signer.address, "v0.7")
  expect((await landedIn(answer, 1))?.hash).toBe((await landedIn(answer, 0))?.hash)
  expect(await stack.counts(one, two)).toEqual([1, 1])
})

it("a reorganisation of confirmed blocks lets the attack through, and the loss is the attacker's", async () => {
  const id = idOf("reorganised")
  const mallory = handedTo(attacker, "v0.6")
  const bob = handedTo(victim, "v0.7")
  await arrange()
  const own = only(await mallory.out([nest()]))
  const theirs = only(await bob.out([stack.hit("inner", id)]))
  const before = await stack.provider.send("evm_snapshot", [])
  const first = stack.ask(mallory.post(own))
  await stack.pooled(1, serviceEoa)
  await stack.mine()
  expect((await first).status).toBe(1)
  const second = stack.ask(bob.post(theirs, { over: theirs.signingHash }))
  const bundle = await pendingBundle(serviceEoa, entryPoints["v0.7"])
  if (bundle === null) throw new Error("a bundle was expected")
  const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(serviceEoa) }
  const open = await stack.ask(
    Effect.orDie(Effect.flatMap(TransactionJournal, (journal) => journal.openOf(lane)))
  )
  await stack.provider.send("evm_revert", [before])
  await load(bundle, "v0.7")
  // The node may have kept it.
  for (const { versions } of open)
    for (const { raw } of versions)
      await stack.provider.send("eth_sendRawTransaction", [raw]).catch(() => null)
  await stack.mine()
  const answer = await second
  expect(answer.status).toBe(1)
  expect((await landedIn(answer))?.to).toBe(entryPoints["v0.6"])
  expect(await stack.counts(id)).toEqual([1])
  expect(await stack.provider.getBalance(thief)).toBeGreaterThan(0n)
  await nothingLost(victim)
  expect((await losses(attacker)).held).toBeGreaterThan(0n)
  await stack.provider.send("anvil_mine", ["0x5"])
  await expect.poll(async () => (await losses(attacker)).booked).toBeGreaterThan(0n)
  await nothingLost(victim)
})
