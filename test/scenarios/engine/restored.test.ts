import { copyFileSync, existsSync } from "node:fs"
import * as Effect from "effect/Effect"
import { id as hashOf } from "ethers"
import { afterEach, describe, expect, it } from "vitest"
import * as Cancellations from "../../../src/application/lanes/requests/Cancellations.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RecoveryJournal } from "../../../src/application/ports/journal/RecoveryJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Journey from "../../support/custody/Journey.js"
import * as Power from "../../support/stack/Power.js"
import {
  Address,
  keyOf,
  type LifeOptions,
  type Ports,
  type Runtime,
  useStack
} from "../../support/stack/Stack.js"

let multisig: Address.Address
const stack = useStack({ profile: { bumpAfterMillis: 600_000 } }, async (stack) => {
  await stack.create("one", "two")
  multisig = await Journey.make(stack, "v0.7").created({
    salt: "several",
    walletCustody: 3,
    signers: [{ clientId: "dev", versionId: "1" }, Journey.second, keyOf(9).address],
    threshold: "2"
  })
})

const lives: Array<Runtime> = []
afterEach(() => Promise.all(lives.splice(0).map((life) => life.dispose())))
/** The next life of the service over that file. */
const live = async (database: string, options: LifeOptions = {}) => {
  const life = stack.begin({ ...options, database })
  lives.push(life)
  await life.runPromise(Sweep.start)
  return life
}

type Work = (caller: Caller) => Effect.Effect<unknown, Failure, Ports>

/**
 * Begins this work and stops there. `backup`: a copy of the moment; `database`: the one with which the service goes on.
 */
const stoppedAt = async (spot: Power.Spot, database: string, all: ReadonlyArray<Work>) => {
  const backup = stack.database()
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
  for (const suffix of ["", "-wal"])
    if (existsSync(`${database}${suffix}`)) copyFileSync(`${database}${suffix}`, `${backup}${suffix}`)
  return { backup, database, requestIds }
}
/** Accepts this work and signs nothing of it. */
const acceptedIn = (database: string, ...all: ReadonlyArray<Work>) =>
  stoppedAt({ step: "allocate", moment: "before" }, database, all)
const accepted = (...all: ReadonlyArray<Work>) => acceptedIn(stack.database(), ...all)
/** Signs its transaction too, which no node gets. */
const signed = (work: Work) => stoppedAt({ step: "recordSigned", moment: "after" }, stack.database(), [work])

const answersOf = async (life: Runtime, requestIds: ReadonlyArray<string>) => {
  const answers = []
  for (const requestId of requestIds) answers.push((await stack.answerOf(life, requestId)).answer)
  return answers
}
/** The service goes on with the database until these requests have their answers, which it gives. */
const executed = async (database: string, requestIds: ReadonlyArray<string>) => {
  const life = await live(database)
  const answers = await answersOf(life, requestIds)
  await life.dispose()
  return answers
}
/** The life with the backup answers as the one that went on did, and nothing was done once more. */
const sameAnswers = async (
  { backup, requestIds }: Awaited<ReturnType<typeof accepted>>,
  before: ReadonlyArray<{ readonly txHash: string; readonly returnData: unknown }>
) => {
  const nonce = await stack.nonce()
  const after = await answersOf(await live(backup), requestIds)
  expect(after).toMatchObject(before.map(({ returnData, txHash }) => ({ status: 1, txHash, returnData })))
  expect(await stack.nonce()).toBe(nonce)
}
const once = async (...ids: ReadonlyArray<string>) =>
  expect(await stack.counts(...ids)).toEqual(ids.map(() => 1))

const heldOf = async (life: Runtime, requestId: string) => {
  const held = async () => (await stack.requestOf(life, requestId))?.held ?? null
  await expect.poll(held, { timeout: 30_000 }).not.toBeNull()
  return held()
}

const hit =
  (salt: string, id: string, settings: object = {}): Work =>
  (caller) =>
    stack.execute([stack.hit(salt, id)], settings, caller)
const directly =
  (id: string): Work =>
  (caller) => {
    const to = Address.unsafe(String(stack.counter.target))
    return stack.transact({ to, funcSignature: "hit(bytes32)", funcParams: [id] }, {}, caller)
  }
/** Somebody else uses the key. */
const foreign = async () => stack.foreign(await stack.nonce())

/** What was executed since the backup; `between`: what happens before, so that an op is prepared as another one. */
interface Case {
  readonly work: (id: string) => ReadonlyArray<Work> | Promise<ReadonlyArray<Work>>
  readonly from?: (...all: ReadonlyArray<Work>) => ReturnType<typeof accepted>
  readonly between?: () => Promise<unknown>
  readonly behind?: () => Promise<unknown>
  /** Nothing counts the id. */
  readonly isUncounted?: boolean
}

const known = async (id: string, settings: object) => {
  const before = await accepted(hit("one", hashOf(`${id} before`), settings))
  await executed(before.database, before.requestIds)
  return before.database
}
const afterAnother = (settings: () => object): Case => {
  let database = ""
  return {
    work: async (id) => {
      database = await known(id, settings())
      return [hit("one", id, settings())]
    },
    from: (...all) => acceptedIn(database, ...all)
  }
}

const cases: Readonly<Record<string, Case>> = {
  "an op under another hash": { work: (id) => [hit("one", id)] },
  "an op of EntryPoint v0.6 after one of the same key that the database knows": afterAnother(() => ({
    entryPoint: Address.unsafe(entryPoints["v0.6"])
  })),
  "an op of EntryPoint v0.8 after one of the same key that the database knows": afterAnother(() => ({
    entryPoint: Address.unsafe(entryPoints["v0.8"])
  })),
  "an op that the operator pays for, after one of the same key that the database knows": afterAnother(() => ({
    paymaster: Address.unsafe(stack.suite.paymaster)
  })),
  "a transaction of the signer, with somebody else's before and after it": {
    work: (id) => [directly(id)],
    between: foreign,
    behind: foreign
  },
  "a wallet's creation": {
    work: async (id) => {
      await stack.fund(stack.predict(id), 10n ** 18n)
      return [(caller) => stack.createWallets([id], {}, caller)]
    },
    isUncounted: true
  },
  "an op that its caller had estimated": {
    work: async (id) => {
      const { userOps } = await stack.estimate([stack.hit("one", id)])
      return [(caller) => stack.post(userOps, "signingHash", {}, caller)]
    }
  },
  "an op whose window is over": {
    work: async (id) => {
      const time = await stack.now()
      const window = { validAfter: time - 5, validUnitl: time + 300 }
      return [(caller) => stack.execute([stack.hit("one", id, window)], {}, caller)]
    },
    behind: () => stack.later(301)
  },
  "an op that was signed, and went under another nonce since somebody else took its own": {
    work: (id) => [hit("one", id)],
    from: (work) => signed(work as Work),
    between: foreign
  },
  "a transaction of the signer that was signed, and went under another nonce": {
    work: (id) => [directly(id)],
    from: (work) => signed(work as Work),
    between: foreign
  }
}

describe("a database from before the work was executed", { timeout: 60_000 }, () => {
  it.each(Object.entries(cases))(
    "has it told, and not executed again: %s",
    async (name, { behind, between = () => Promise.resolve(), from = accepted, isUncounted, work }) => {
      const id = hashOf(name)
      const stopped = await from(...(await work(id)))
      await between()
      await stack.mine()
      const before = await executed(stopped.database, stopped.requestIds)
      await behind?.()
      await sameAnswers(stopped, before)
      if (isUncounted !== true) await once(id)
    }
  )

  it("ops of several owners and ops that depend on each other have been executed in bundles of others' ops", async () => {
    const ids = ["a", "b", "c", "other"].map((part) => hashOf(`together ${part}`))
    const [a = "", b = "", c = "", other = ""] = ids
    const operation = (id: string, more: object = {}) => {
      const { salt: _, ...rest } = stack.hit("", id, more)
      return { ...rest, wallet: multisig, walletCustody: 0 as const }
    }
    const stopped = await accepted(
      (caller) =>
        stack.execute(
          [operation(a), operation(b, { dependsOn: 0 }), operation(c, { dependsOn: 1 })],
          { cosigners: [Journey.second] },
          caller
        ),
      hit("two", other)
    )
    await stack.mine()
    await sameAnswers(stopped, await executed(stopped.database, stopped.requestIds))
    await once(...ids)
  })

  it("of two equal transactions of the signer that one has been executed once counts for the older request", async () => {
    const id = hashOf("equal")
    const { backup, database, requestIds } = await accepted(directly(id), directly(id))
    const before = await executed(database, requestIds)
    expect(await stack.counts(id)).toEqual([2])
    const after = await answersOf(await live(backup), requestIds)
    expect(after.map(({ status }) => status)).toEqual([1, 1])
    expect(new Set(after.map(({ txHash }) => txHash))).toEqual(new Set(before.map(({ txHash }) => txHash)))
    expect(await stack.counts(id)).toEqual([2])
  })

  it("what has been executed still waits in the pool: nothing is signed until it is mined and read", async () => {
    const [own, other] = [hashOf("pooled"), hashOf("pooled after")]
    const { backup, database, requestIds } = await accepted(directly(own), directly(other))
    await stack.automine(false)
    const second = await live(database)
    await stack.pooled(2)
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
    await stack.automine(true)
    await stack.mine()
    expect(await answersOf(life, requestIds)).toMatchObject([{ status: 1 }, { status: 1 }])
    expect(signed).toBe(0)
    await once(own, other)
  })

  it("only somebody else has used the key: the work goes on without anybody", async () => {
    const [op, direct] = [hashOf("after others"), hashOf("direct after others")]
    const { backup, requestIds } = await accepted(hit("one", op), directly(direct))
    await foreign()
    await foreign()
    expect(await answersOf(await live(backup), requestIds)).toMatchObject([{ status: 1 }, { status: 1 }])
    await once(op, direct)
  })
})

/** The same call of the wallet was made under a nonce that the database does not connect with the request. */
const doneUnderAnotherNonce = async (id: string) => {
  const { backup, database, requestIds } = await accepted(hit("two", id))
  // The key's next nonce is used before the request goes on.
  const life = stack.begin()
  await life.runPromise(hit("two", hashOf(`${id} before`))(stack.caller()))
  await life.dispose()
  await executed(database, requestIds)
  await once(id)
  return { backup, requestId: requestIds[0] ?? "" }
}

describe("work that may have been done already", { timeout: 60_000 }, () => {
  it("is held, also by the next life, until the operator releases it", async () => {
    const id = hashOf("released")
    const { backup, requestId } = await doneUnderAnotherNonce(id)
    const life = await live(backup)
    expect(await heldOf(life, requestId)).toContain("the same call")
    await life.dispose()
    const next = await live(backup)
    const recovery = await next.runPromise(RecoveryJournal)
    expect(await stack.requestOf(next, requestId)).toMatchObject({ outcome: null })
    expect(await next.runPromise(recovery.unhold(requestId))).toBe(true)
    expect((await stack.answerOf(next, requestId)).answer).toMatchObject({ status: 1 })
    expect(await stack.counts(id)).toEqual([2])
  })

  it("is held until the operator drops it, which its answer says", async () => {
    const id = hashOf("dropped")
    const { backup, requestId } = await doneUnderAnotherNonce(id)
    const life = await live(backup)
    await heldOf(life, requestId)
    const journal = await life.runPromise(RequestJournal)
    const cancelled = (code: "request_cancelled" | "request_dropped") =>
      life.runPromise(Cancellations.cancel(journal, requestId, code, { onlyUnsigned: false }))
    expect(await cancelled("request_cancelled")).toBe("kept")
    expect(await cancelled("request_dropped")).toBe("final")
    expect(await stack.requestOf(life, requestId)).toMatchObject({
      cancelled: "request_dropped",
      held: null,
      outcome: expect.stringContaining("request_dropped")
    })
    await once(id)
  })

  it("is held when the node does not show what there is", async () => {
    const [op, direct] = [hashOf("hidden op"), hashOf("hidden direct")]
    const { backup, database, requestIds } = await accepted(hit("one", op), directly(direct))
    const [first = "", second = ""] = requestIds
    await stack.mine()
    await executed(database, requestIds)
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
    expect(await heldOf(life, first)).toContain("does not show")
    expect(await heldOf(life, second)).toContain("cannot be read")
    await once(op, direct)
  })
})
