import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import * as Cancellations from "../../../src/application/lanes/requests/Cancellations.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Hits from "../../support/stack/Hits.js"
import * as Power from "../../support/stack/Power.js"
import {
  Address,
  keyOf,
  type LifeOptions,
  type Ports,
  type Stack,
  startStack
} from "../../support/stack/Stack.js"

const phone = Authenticator.make()
let stack: Stack
let hits: Hits.Hits
let folder: string
let multisig: Address.Address
const lives: Array<Hits.Runtime> = []
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "restored-"))
  stack = await startStack({ profile: { bumpAfterMillis: 600_000 } })
  hits = await Hits.make(stack)
  await stack.create("one", "two")
  await Journey.make(stack, "v0.7").created({
    salt: "phone",
    walletCustody: 5,
    passkeyPubKey: [phone.spki.toString("base64")]
  })
  multisig = await Journey.make(stack, "v0.7").created({
    salt: "several",
    walletCustody: 3,
    signers: [{ clientId: "dev", versionId: "1" }, Journey.second, keyOf(9).address],
    threshold: "2"
  })
})
afterEach(async () => {
  await Promise.all(lives.splice(0).map((life) => life.dispose()))
  await hits.automine(true)
})
afterAll(async () => {
  await stack.stop()
  rmSync(folder, { recursive: true, force: true })
})

const begin = (options: LifeOptions) => {
  const life = stack.begin(options)
  lives.push(life)
  return life
}

/** The next life of the service over that file. */
const live = async (database: string, options: LifeOptions = {}) => {
  const life = begin({ ...options, database })
  await life.runPromise(Sweep.start)
  return life
}

type Work = (caller: Caller) => Effect.Effect<unknown, Failure, Ports>

let files = 0

/**
 * Begins this work and stops there. `backup`: a copy of the moment; `database`: the one with which the service goes on.
 */
const stoppedAt = async (spot: Power.Spot, database: string, all: ReadonlyArray<Work>) => {
  files += 1
  const backup = join(folder, `${files} backup.sqlite`)
  const requestIds: Array<string> = []
  for (const work of all) {
    const power = Power.make(spot)
    const life = stack.begin({ database, ...power.life })
    const caller = stack.caller()
    requestIds.push(caller.requestId)
    life.runFork(work(caller))
    await power.failed
    await life.dispose()
  }
  const reader = stack.begin({ database })
  const hash = (await hits.requestOf(reader, requestIds[0] ?? ""))?.ops[0]?.userOpHash
  await reader.dispose()
  for (const suffix of ["", "-wal"])
    if (existsSync(`${database}${suffix}`)) copyFileSync(`${database}${suffix}`, `${backup}${suffix}`)
  const [requestId = "", ...others] = requestIds
  return { backup, database, hash, others, requestId }
}
const fresh = () => {
  files += 1
  return join(folder, `${files}.sqlite`)
}
/** Accepts this work and signs nothing of it. */
const acceptedIn = (database: string, ...all: ReadonlyArray<Work>) =>
  stoppedAt({ step: "allocate", moment: "before" }, database, all)
const accepted = (...all: ReadonlyArray<Work>) => acceptedIn(fresh(), ...all)
/** Signs its transaction too, which no node gets. */
const signed = (work: Work) => stoppedAt({ step: "recordSigned", moment: "after" }, fresh(), [work])

/** The service goes on with the database until this request has its answer, which it gives. */
const executed = async (database: string, ...requestIds: ReadonlyArray<string>) => {
  const life = await live(database)
  const answers = []
  for (const requestId of requestIds) answers.push(await hits.answerOf(life, requestId))
  await life.dispose()
  return answers
}

const heldOf = async (life: Hits.Runtime, requestId: string) => {
  await expect
    .poll(async () => (await hits.requestOf(life, requestId))?.held ?? null, { timeout: 30_000 })
    .not.toBeNull()
  return (await hits.requestOf(life, requestId))?.held
}

const hit =
  (salt: string, id: string): Work =>
  (caller) =>
    hits.execute(caller, hits.hit(salt, id))

const directly =
  (id: string): Work =>
  (caller) =>
    TransactSigner.run(caller, {
      to: hits.counter,
      funcSignature: "hit(bytes32)",
      funcParams: [id],
      settings: { rpc: stack.settings.rpc, signer: stack.settings.signer }
    })

describe("a database from before the work was executed", () => {
  it("an op has been executed under another hash: it is not executed again, and the answer tells of it", async () => {
    const id = hashOf("op")
    const { backup, database, hash, requestId } = await accepted(hit("one", id))
    // The clock of the chain goes on, so that the op is prepared as another one.
    await hits.mine()
    const [before] = await executed(database, requestId)
    const life = await live(backup)
    const after = await hits.answerOf(life, requestId)
    expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
    expect(after.answer.returnData).toEqual(before.answer.returnData)
    expect(after.answer.returnData[0][0].userOpHash).not.toBe(hash)
    expect(await hits.countOf(id)).toBe(1)
  }, 60_000)

  it.each([
    ["through EntryPoint v0.6", () => ({ entryPoint: Address.unsafe(entryPoints["v0.6"]) })],
    ["through EntryPoint v0.8", () => ({ entryPoint: Address.unsafe(entryPoints["v0.8"]) })],
    ["paid for by the operator", () => ({ paymaster: Address.unsafe(stack.suite.paymaster) })]
  ])(
    "an op %s has been executed after an op of the same key that the database knows",
    async (kind, more) => {
      const [first, id] = [hashOf(`${kind} first`), hashOf(kind)]
      const settings = { ...stack.settings, ...more() }
      const work =
        (each: string): Work =>
        (caller) =>
          ExecuteOperations.run(caller, { operations: [hits.hit("one", each)], settings })
      const known = await accepted(work(first))
      await executed(known.database, known.requestId)
      const { backup, database, requestId } = await acceptedIn(known.database, work(id))
      await hits.mine()
      const [before] = await executed(database, requestId)
      const life = await live(backup)
      const after = await hits.answerOf(life, requestId)
      expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
      expect([await hits.countOf(first), await hits.countOf(id)]).toEqual([1, 1])
    },
    60_000
  )

  it("ops of several owners and ops that depend on each other have been executed in bundles of others' ops", async () => {
    const ids = ["a", "b", "c", "other"].map((part) => hashOf(`together ${part}`))
    const [a = "", b = "", c = "", other = ""] = ids
    const operation = (wallet: Address.Address, id: string) => ({
      ...hits.hit("one", id),
      salt: "",
      wallet,
      walletCustody: 0 as const
    })
    const { backup, database, others, requestId } = await accepted(
      (caller) =>
        ExecuteOperations.run(caller, {
          operations: [
            operation(multisig, a),
            { ...operation(multisig, b), dependsOn: 0 },
            { ...operation(multisig, c), dependsOn: 1 }
          ],
          settings: { ...stack.settings, cosigners: [Journey.second] }
        }),
      hit("two", other)
    )
    await hits.mine()
    const before = await executed(database, requestId, ...others)
    const life = await live(backup)
    const after = [await hits.answerOf(life, requestId), await hits.answerOf(life, others[0] ?? "")]
    expect(after.map(({ answer }) => answer.status)).toEqual([1, 1])
    expect(after.map(({ answer }) => answer.txHashes)).toEqual(before.map(({ answer }) => answer.txHashes))
    expect(await Promise.all(ids.map(hits.countOf))).toEqual([1, 1, 1, 1])
  }, 60_000)

  it("a transaction of the signer has been executed, with somebody else's before and after it", async () => {
    const id = hashOf("direct")
    const { backup, database, requestId } = await accepted(directly(id))
    await hits.foreign(await hits.nonce())
    const [before] = await executed(database, requestId)
    await hits.foreign(await hits.nonce())
    const life = await live(backup)
    const after = await hits.answerOf(life, requestId)
    expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
    expect(await hits.countOf(id)).toBe(1)
  }, 60_000)

  it("of two equal transactions of the signer that one has been executed once counts for the older request", async () => {
    const id = hashOf("equal")
    const { backup, database, others, requestId } = await accepted(directly(id), directly(id))
    const [other = ""] = others
    const before = await executed(database, requestId, other)
    expect(await hits.countOf(id)).toBe(2)
    const life = await live(backup)
    const after = [await hits.answerOf(life, requestId), await hits.answerOf(life, other)]
    expect(after.map(({ answer }) => answer.status)).toEqual([1, 1])
    expect(new Set(after.map(({ answer }) => answer.txHash))).toEqual(
      new Set(before.map(({ answer }) => answer.txHash))
    )
    expect(await hits.countOf(id)).toBe(2)
  }, 60_000)

  it("wallets have been created", async () => {
    await stack.fund(stack.predict("made"), 10n ** 18n)
    const { backup, database, requestId } = await accepted((caller) =>
      CreateWallets.run(caller, {
        accounts: [{ salt: "made", walletCustody: 1 }],
        settings: stack.settings
      })
    )
    await hits.mine()
    const [before] = await executed(database, requestId)
    const nonce = await hits.nonce()
    const life = await live(backup)
    const after = await hits.answerOf(life, requestId)
    expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
    expect(await hits.nonce()).toBe(nonce)
  }, 60_000)

  it("what has been executed still waits in the pool: nothing is signed until it is mined and read", async () => {
    const [own, other] = [hashOf("pooled"), hashOf("pooled after")]
    const { backup, database, others, requestId } = await accepted(directly(own), directly(other))
    await hits.automine(false)
    const second = await live(database)
    await hits.pooled(2)
    await second.dispose()
    let signed = 0
    const count: Power.Around = (step, effect) =>
      Effect.suspend(() => {
        if (step === "allocate") signed += 1
        return effect
      })
    let looks = 0
    const life = await live(backup, {
      wrapJournal: (journal) => Power.wrap(journal, count),
      onExchange: (methods) => {
        if (methods.includes("eth_getTransactionCount")) looks += 1
      }
    })
    await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(1)
    expect(signed).toBe(0)
    await hits.automine(true)
    await hits.mine()
    for (const each of [requestId, ...others])
      expect((await hits.answerOf(life, each)).answer).toMatchObject({ status: 1 })
    expect(signed).toBe(0)
    expect([await hits.countOf(own), await hits.countOf(other)]).toEqual([1, 1])
  }, 60_000)

  it("an op that its caller had estimated has been executed: it is not executed again", async () => {
    const id = hashOf("encoded")
    const { settings } = stack
    const { userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [hits.hit("one", id)], settings })
    )
    const operations = userOps.map((op) => ({
      encodedUserOp: Hex.unsafe(op.encodedUserOp),
      userOpHash: Hex.unsafe32(op.userOpHash),
      walletCustody: 1 as const,
      signature: Hex.unsafe(stack.signer.signingKey.sign(op.signingHash).serialized)
    }))
    const { backup, database, requestId } = await accepted((caller) =>
      ExecuteEncoded.run(caller, { operations, settings })
    )
    await hits.mine()
    const [before] = await executed(database, requestId)
    const nonce = await hits.nonce()
    const life = await live(backup)
    const after = await hits.answerOf(life, requestId)
    expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
    expect([await hits.countOf(id), await hits.nonce()]).toEqual([1, nonce])
  }, 60_000)

  it("an op with a window has been executed, which is over: it is not executed again", async () => {
    const id = hashOf("window")
    const time = Number((await stack.provider.getBlock("latest"))?.timestamp)
    const validUnitl = time + 300
    const { backup, database, requestId } = await accepted((caller) =>
      hits.execute(caller, { ...hits.hit("one", id), validAfter: time - 5, validUnitl })
    )
    const [before] = await executed(database, requestId)
    await stack.provider.send("evm_setNextBlockTimestamp", [validUnitl + 1])
    await hits.mine()
    const life = await live(backup)
    const after = await hits.answerOf(life, requestId)
    expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
    expect(await hits.countOf(id)).toBe(1)
  }, 60_000)

  it.each([
    ["an op", (id: string) => hit("one", id)],
    ["a transaction of the signer", directly]
  ])(
    "%s was signed, somebody else's transaction took its nonce, and it was executed under another one",
    async (kind, workOf) => {
      const id = hashOf(`${kind} without its nonce`)
      const { backup, database, requestId } = await signed(workOf(id))
      await hits.foreign(await hits.nonce())
      await hits.mine()
      const [before] = await executed(database, requestId)
      expect(await hits.countOf(id)).toBe(1)
      const life = await live(backup)
      const after = await hits.answerOf(life, requestId)
      expect(after.answer).toMatchObject({ status: 1, txHash: before.answer.txHash })
      expect(await hits.countOf(id)).toBe(1)
    },
    60_000
  )

  it("only somebody else has used the key: the work goes on without anybody", async () => {
    const [op, direct] = [hashOf("after others"), hashOf("direct after others")]
    const { backup, others, requestId } = await accepted(hit("one", op), directly(direct))
    await hits.foreign(await hits.nonce())
    await hits.foreign(await hits.nonce())
    const life = await live(backup)
    for (const each of [requestId, ...others])
      expect((await hits.answerOf(life, each)).answer).toMatchObject({ status: 1 })
    expect([await hits.countOf(op), await hits.countOf(direct)]).toEqual([1, 1])
  }, 60_000)
})

/** The same call of the wallet was made under a nonce that the database does not connect with the request. */
const doneUnderAnotherNonce = async (id: string) => {
  const { backup, database, requestId } = await accepted(hit("two", id))
  // The key's next nonce is used before the request goes on.
  const life = stack.begin()
  await life.runPromise(hit("two", hashOf(`${id} before`))(stack.caller()))
  await life.dispose()
  await executed(database, requestId)
  expect(await hits.countOf(id)).toBe(1)
  return { backup, requestId }
}

describe("work that may have been done already", () => {
  it("is held, also by the next life, until the operator releases it", async () => {
    const id = hashOf("released")
    const { backup, requestId } = await doneUnderAnotherNonce(id)
    const life = await live(backup)
    expect(await heldOf(life, requestId)).toContain("the same call")
    await life.dispose()
    const next = await live(backup)
    const recovery = await next.runPromise(RecoveryJournal)
    expect(await hits.requestOf(next, requestId)).toMatchObject({ outcome: null })
    expect(await next.runPromise(recovery.unhold(requestId))).toBe(true)
    expect((await hits.answerOf(next, requestId)).answer).toMatchObject({ status: 1 })
    expect(await hits.countOf(id)).toBe(2)
  }, 60_000)

  it("is held until the operator drops it, which its answer says", async () => {
    const id = hashOf("dropped")
    const { backup, requestId } = await doneUnderAnotherNonce(id)
    const life = await live(backup)
    await heldOf(life, requestId)
    const journal = await life.runPromise(RequestJournal)
    expect(
      await life.runPromise(
        Cancellations.cancel(journal, requestId, "request_cancelled", { onlyUnsigned: false })
      )
    ).toBe("kept")
    expect(
      await life.runPromise(
        Cancellations.cancel(journal, requestId, "request_dropped", { onlyUnsigned: false })
      )
    ).toBe("final")
    const record = await hits.requestOf(life, requestId)
    expect(record).toMatchObject({ cancelled: "request_dropped", held: null })
    expect(record?.outcome).toContain("request_dropped")
    expect(await hits.countOf(id)).toBe(1)
  }, 60_000)

  it("is held when the node does not show what there is", async () => {
    const [op, direct] = [hashOf("hidden op"), hashOf("hidden direct")]
    const { backup, database, others, requestId } = await accepted(hit("one", op), directly(direct))
    const [other = ""] = others
    await hits.mine()
    await executed(database, requestId, other)
    const life = await live(backup, {
      wrapChain: ({ connect }) => ({
        connect: (url, by) =>
          Effect.map(connect(url, by), (client) => ({
            ...client,
            transaction: () => Effect.succeed(null),
            transactionsIn: () =>
              new ChainRpcError({ reason: "rejected", origin: client.origin, message: "pruned" })
          }))
      })
    })
    expect(await heldOf(life, requestId)).toContain("does not show")
    expect(await heldOf(life, other)).toContain("cannot be read")
    expect([await hits.countOf(op), await hits.countOf(direct)]).toEqual([1, 1])
  }, 60_000)
})
