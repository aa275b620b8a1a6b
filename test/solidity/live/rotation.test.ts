import { type Contract, getAddress } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { revertOf, send, senderCreators } from "../../support/suite/Calls.js"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa, indexIn, newPasskey, passkeyProof } from "../../support/suite/Keys.js"
import { type Config, configHash, zeroAddress } from "../../support/suite/Layouts.js"
import {
  authorize,
  configurationOf,
  createWallet,
  execute,
  handleOps,
  initCodeOf,
  newOp,
  nonceOf,
  refusal,
  signOp,
  walletAbi
} from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const [a, b, c] = [devKey(20), devKey(21), devKey(22)] as const
const day = 86_400

type Prove = (hash: string) => string
const by =
  (...owners: ReadonlyArray<typeof a>): Prove =>
  (hash) =>
    ecdsa(hash, ...owners)

/** The wallet calls itself: an operation around this call. */
const selfCall = async (wallet: Contract, prove: Prove, method: string, ...args: ReadonlyArray<unknown>) => {
  const sender = await wallet.getAddress()
  const callData = execute(sender, walletAbi.encodeFunctionData(method, args))
  const op = newOp(sender, {
    nonce: await nonceOf(chain, "v0.7", sender),
    callData,
    callGasLimit: 1_000_000n
  })
  const landed = await handleOps(chain, "v0.7", [await signOp(chain, "v0.7", op, prove)])
  const events = landed.receipt.logs
    .filter((log) => log.address === sender)
    .map((log) => walletAbi.parseLog(log))
    .map((event) => `${event?.name}(${event?.args.join(",")})`)
  return { success: landed.outcomes[0]?.success, reason: landed.outcomes[0]?.reason, events }
}

/** What the wallet answers when `from` calls it. */
const answer = async (wallet: Contract, from: string, method: string, ...args: ReadonlyArray<unknown>) =>
  revertOf(
    chain,
    { from, to: await wallet.getAddress(), data: walletAbi.encodeFunctionData(method, args) },
    walletAbi
  )

describe.each(entryPointVersions)("on EntryPoint %s", (version) => {
  test("a wallet replaces its keys, and the old ones are worthless at once", async () => {
    const wallet = await createWallet(chain, version, `rotates ${version}`, configOf(1, [a]))
    const sender = await wallet.getAddress()
    const op = async (prove: Prove, callData: string) =>
      signOp(chain, version, newOp(sender, { nonce: await nonceOf(chain, version, sender), callData }), prove)
    const rotation = execute(sender, walletAbi.encodeFunctionData("setConfig", [configOf(1, [b])]))
    expect((await handleOps(chain, version, [await op(by(a), rotation)])).outcomes[0]?.success).toBe(true)
    expect(await configurationOf(wallet)).toEqual({ config: configOf(1, [b]), configNonce: 2n })
    const pay = execute(chain.stranger.address, "0x", 1n)
    expect(await refusal(chain, version, [await op(by(a), pay)])).toBe("AA24 signature error")
    expect(await refusal(chain, version, [await op(by(b), pay)])).toBeUndefined()
  })
})

describe("setConfig", () => {
  test("replaces owners, passkeys and threshold as a whole, with an event", async () => {
    const [p, q] = [newPasskey(), newPasskey()]
    const before = configOf(4, [a, b, c], [p], 2)
    const after = configOf(4, [c], [p, q], 3)
    const wallet = await createWallet(chain, "v0.7", "whole", before)
    const { events } = await selfCall(wallet, by(a, b), "setConfig", after)
    expect(events).toEqual([`ConfigChanged(${configHash(after)},2)`])
    expect(await configurationOf(wallet)).toEqual({ config: after, configNonce: 2n })
  })

  test("leaves nothing to validators that it removed, wherever they were listed", async () => {
    const [p, q] = [newPasskey(), newPasskey()]
    const both = configOf(5, [], [p, q])
    const [kept, removed] = indexIn(both, p) === 0 ? [p, q] : [q, p]
    const wallet = await createWallet(chain, "v0.7", "removed", both)
    await selfCall(wallet, (hash) => passkeyProof(hash, kept), "setConfig", configOf(5, [], [kept]))
    const sender = await wallet.getAddress()
    const op = newOp(sender, { nonce: await nonceOf(chain, "v0.7", sender) })
    for (const index of [0, 1, 2, 15, 16, 255])
      expect(
        await refusal(chain, "v0.7", [
          await signOp(chain, "v0.7", op, (hash) => passkeyProof(hash, removed, { index }))
        ])
      ).toBe("AA24 signature error")

    const shared = await createWallet(chain, "v0.7", "removed owners", configOf(3, [a, b, c], [], 2))
    const owners = configOf(3, [a, b, c]).owners
    const [last, ...staying] = [a, b, c].sort((x, y) => owners.indexOf(y.address) - owners.indexOf(x.address))
    if (last === undefined) throw new Error("three owners")
    await selfCall(shared, by(a, b), "setConfig", configOf(3, staying, [], 1))
    const other = await shared.getAddress()
    const next = newOp(other, { nonce: await nonceOf(chain, "v0.7", other) })
    expect(await refusal(chain, "v0.7", [await signOp(chain, "v0.7", next, by(last))])).toBe(
      "AA24 signature error"
    )
    expect(await refusal(chain, "v0.7", [await signOp(chain, "v0.7", next, by(...staying))])).toBeUndefined()
  })

  test("is the wallet's own: neither owners, EntryPoints, factory, deployer nor strangers call it", async () => {
    const wallet = await createWallet(chain, "v0.7", "own", configOf(1, [a]))
    const callers = [a, chain.stranger, chain.deployer, chain.beaconOwner].map((key) => key.address)
    for (const from of [...callers, chain.suite.factory, ...Object.values(entryPoints)])
      expect(await answer(wallet, from, "setConfig", configOf(1, [b]))).toBe(`OnlySelf(${from})`)
    expect(await answer(wallet, await wallet.getAddress(), "setConfig", configOf(1, [b]))).toBe("none")
  })

  test("never changes the custody", async () => {
    const wallet = await createWallet(chain, "v0.7", "custody", configOf(3, [a], [], 1))
    const self = await wallet.getAddress()
    expect(await answer(wallet, self, "setConfig", configOf(1, [a]))).toBe("CustodyIsFixed(1)")
    expect(await answer(wallet, self, "setConfig", configOf(4, [a], [newPasskey()]))).toBe(
      "CustodyIsFixed(4)"
    )
  })
})

describe("the rules of a configuration hold at creation and at rotation", () => {
  const key = newPasskey().publicKey
  const sorted = [a, b, c].map((wallet) => wallet.address).sort((x, y) => (BigInt(x) < BigInt(y) ? -1 : 1))
  const many = Array.from({ length: 17 }, (_, i) => getAddress(`0x${(i + 1).toString(16).padStart(40, "0")}`))
  const keys = [...Array.from({ length: 17 }, () => newPasskey().publicKey)].sort((x, y) =>
    x.x < y.x ? -1 : 1
  )
  const config = (
    custody: number,
    threshold: number,
    owners: ReadonlyArray<string>,
    passkeys: Config["passkeys"] = []
  ): Config => ({ custody, threshold, owners, passkeys })
  const [first = "", second = ""] = sorted
  const [lesser = key, greater = key] = keys

  const cases: ReadonlyArray<readonly [string, Config, string]> = [
    ["no custody", config(0, 1, [first]), "InvalidCustody(0)"],
    ["unknown custody", config(6, 1, [first]), "InvalidCustody(6)"],
    ["no owner", config(1, 1, []), "InvalidOwnerCount(0)"],
    ["two owners of one", config(1, 1, sorted.slice(0, 2)), "InvalidOwnerCount(2)"],
    ["two owners beside passkeys", config(2, 1, sorted.slice(0, 2), [key]), "InvalidOwnerCount(2)"],
    ["no signers", config(3, 1, []), "InvalidOwnerCount(0)"],
    ["seventeen signers", config(3, 1, many), "InvalidOwnerCount(17)"],
    ["no signers in a mix", config(4, 1, [], [key]), "InvalidOwnerCount(0)"],
    ["an owner beside passkeys alone", config(5, 1, [first], [key]), "InvalidOwnerCount(1)"],
    ["a passkey for ECDSA", config(1, 1, [first], [key]), "InvalidPasskeyCount(1)"],
    ["a passkey for a multisig", config(3, 1, [first], [key]), "InvalidPasskeyCount(1)"],
    ["no passkey", config(2, 1, [first]), "InvalidPasskeyCount(0)"],
    ["no passkey in a mix", config(4, 1, [first]), "InvalidPasskeyCount(0)"],
    ["no passkey alone", config(5, 1, []), "InvalidPasskeyCount(0)"],
    ["seventeen passkeys", config(5, 1, [], keys), "InvalidPasskeyCount(17)"],
    ["threshold zero", config(3, 0, sorted), "InvalidThreshold(0)"],
    ["threshold zero for one", config(1, 0, [first]), "InvalidThreshold(0)"],
    ["threshold above the signers", config(3, 4, sorted), "InvalidThreshold(4)"],
    ["threshold above the union", config(4, 5, sorted, [key]), "InvalidThreshold(5)"],
    ["threshold two for one owner", config(1, 2, [first]), "InvalidThreshold(2)"],
    ["threshold two for owner or passkey", config(2, 2, [first], [key]), "InvalidThreshold(2)"],
    ["threshold two for passkeys", config(5, 2, [], keys.slice(0, 2)), "InvalidThreshold(2)"],
    ["the zero address", config(1, 1, [zeroAddress]), `InvalidOwner(${zeroAddress})`],
    ["the same owner twice", config(3, 2, [first, first]), `InvalidOwner(${first})`],
    ["owners out of order", config(3, 1, [second, first]), `InvalidOwner(${first})`],
    ["the same passkey twice", config(5, 1, [], [key, key]), `InvalidPasskey(${key.x},${key.y})`],
    ["passkeys out of order", config(5, 1, [], [greater, lesser]), `InvalidPasskey(${lesser.x},${lesser.y})`],
    [
      "a point off the curve",
      config(5, 1, [], [{ x: key.y, y: key.x }]),
      `InvalidPasskey(${key.y},${key.x})`
    ],
    [
      "the point (0, 0)",
      config(2, 1, [first], [{ x: `0x${"00".repeat(32)}`, y: `0x${"00".repeat(32)}` }]),
      `InvalidPasskey(0x${"00".repeat(32)},0x${"00".repeat(32)})`
    ]
  ]

  let wallet: Contract
  beforeAll(async () => {
    wallet = await createWallet(chain, "v0.7", "rules", configOf(1, [a]))
  })

  test.each(cases)("%s is refused", async (name, invalid, error) => {
    const from = senderCreators["v0.7"]
    const authorized = await authorize(chain, name, invalid, { bundler: from })
    const initCode = initCodeOf(chain.suite.factory, name, invalid, authorized)
    const creation = {
      from,
      to: chain.suite.factory,
      data: `0x${initCode.slice(42)}`
    }
    expect(await revertOf(chain, creation, walletAbi)).toBe(error)
    expect(await answer(wallet, await wallet.getAddress(), "setConfig", invalid)).toBe(error)
  })

  test("sixteen signers and sixteen passkeys are accepted", async () => {
    const most = config(4, 32, many.slice(0, 16), keys.slice(0, 16))
    const biggest = await createWallet(chain, "v0.7", "most", most)
    expect(await configurationOf(biggest)).toEqual({ config: most, configNonce: 1n })
  })
})

describe("recovery", () => {
  const recovery = devKey(9)
  let wallet: Contract
  let salt = 0

  beforeEach(async () => {
    wallet = await createWallet(chain, "v0.7", `recovery ${salt++}`, configOf(1, [a]))
    await chain.fund(recovery.address, 10n ** 18n)
  })

  const named = () => selfCall(wallet, by(a), "setRecovery", recovery.address, 2 * day)
  const start = (config: Config) => send(recovery.connect(chain.provider), wallet, "startRecovery", config)
  const finish = (config: Config) => answer(wallet, recovery.address, "finishRecovery", config)
  const wait = async (seconds: number) => {
    await chain.provider.send("evm_increaseTime", [seconds])
    await chain.provider.send("evm_mine", [])
  }
  const none = [zeroAddress, 0n, `0x${"00".repeat(32)}`, 0n]
  const state = async () => (await wallet.getFunction("recoveryState").staticCall()).toArray()

  test("does not exist until the wallet names an address", async () => {
    expect(await state()).toEqual(none)
    for (const from of [recovery.address, zeroAddress, a.address])
      for (const method of ["startRecovery", "finishRecovery"])
        expect(await answer(wallet, from, method, configOf(1, [b]))).toBe(`OnlyRecovery(${from})`)
  })

  test("is named by the wallet alone, with a delay of 48 hours to 365 days", async () => {
    const self = await wallet.getAddress()
    expect(await answer(wallet, a.address, "setRecovery", recovery.address, 2 * day)).toBe(
      `OnlySelf(${a.address})`
    )
    expect(await answer(wallet, self, "setRecovery", recovery.address, 2 * day - 1)).toBe(
      `InvalidRecoveryDelay(${2 * day - 1})`
    )
    expect(await answer(wallet, self, "setRecovery", recovery.address, 365 * day + 1)).toBe(
      `InvalidRecoveryDelay(${365 * day + 1})`
    )
    expect(await answer(wallet, self, "setRecovery", zeroAddress, 2 * day)).toBe(
      `InvalidRecoveryDelay(${2 * day})`
    )
    expect((await named()).events).toEqual([`RecoveryChanged(${recovery.address},${2 * day})`])
    expect((await state()).slice(0, 2)).toEqual([recovery.address, BigInt(2 * day)])
  })

  test("replaces the keys after the delay, not before", async () => {
    await named()
    const lost = configOf(1, [b])
    await start(lost)
    const [, , pending, readyAt] = await state()
    expect([pending, readyAt]).toEqual([configHash(lost), BigInt((await chain.now()) + 2 * day)])
    expect(await finish(lost)).toBe(`RecoveryNotReady(${readyAt})`)
    expect(await finish(configOf(1, [c]))).toBe(`NoSuchRecovery(${configHash(configOf(1, [c]))})`)
    await wait(2 * day - 10)
    expect(await finish(lost)).toBe(`RecoveryNotReady(${readyAt})`)
    await wait(10)
    expect(await answer(wallet, chain.stranger.address, "finishRecovery", lost)).toBe(
      `OnlyRecovery(${chain.stranger.address})`
    )
    await send(recovery.connect(chain.provider), wallet, "finishRecovery", lost)
    expect(await configurationOf(wallet)).toEqual({ config: lost, configNonce: 2n })
    expect(await state()).toEqual(none)
    expect(await finish(lost)).toBe(`OnlyRecovery(${recovery.address})`)
  })

  test("is of nobody after a rotation: who had the keys before may have named it", async () => {
    await named()
    const { events } = await selfCall(wallet, by(a), "setConfig", configOf(1, [b]))
    expect(events).toEqual([
      `ConfigChanged(${configHash(configOf(1, [b]))},2)`,
      `RecoveryChanged(${zeroAddress},0)`
    ])
    expect(await state()).toEqual(none)
    await wait(365 * day)
    for (const method of ["startRecovery", "finishRecovery"])
      expect(await answer(wallet, recovery.address, method, configOf(1, [c]))).toBe(
        `OnlyRecovery(${recovery.address})`
      )
  })

  test("is called off by the wallet: cancelled, or overtaken by new keys or another recovery address", async () => {
    const target = configOf(1, [b])
    const [nothing, nobody] = [`NoSuchRecovery(${configHash(target)})`, `OnlyRecovery(${recovery.address})`]
    const overtakers: ReadonlyArray<readonly [string, string, ...ReadonlyArray<unknown>]> = [
      [nothing, "cancelRecovery"],
      [nobody, "setConfig", configOf(1, [a])],
      [nothing, "setRecovery", recovery.address, 3 * day]
    ]
    for (const [left, method, ...args] of overtakers) {
      await named()
      await start(target)
      const { events } = await selfCall(wallet, by(a), method, ...args)
      expect(events[0]).toBe(`RecoveryCancelled(${configHash(target)})`)
      await wait(4 * day)
      expect(await finish(target)).toBe(left)
    }
    expect(await answer(wallet, recovery.address, "cancelRecovery")).toBe(`OnlySelf(${recovery.address})`)
  })

  test("ends with the address that the wallet removed", async () => {
    const target = configOf(1, [b])
    await named()
    await start(target)
    await selfCall(wallet, by(a), "setRecovery", zeroAddress, 0)
    await wait(3 * day)
    expect(await finish(target)).toBe(`OnlyRecovery(${recovery.address})`)
  })

  test("starts anew, with its whole delay, when another configuration is announced", async () => {
    await named()
    await start(configOf(1, [b]))
    await wait(day)
    await start(configOf(1, [c]))
    await wait(day + 10)
    expect(await finish(configOf(1, [b]))).toBe(`NoSuchRecovery(${configHash(configOf(1, [b]))})`)
    expect(await finish(configOf(1, [c]))).toMatch(/^RecoveryNotReady/)
  })

  test("cannot announce what could not be installed", async () => {
    await named()
    expect(await answer(wallet, recovery.address, "startRecovery", configOf(3, [b]))).toBe(
      "CustodyIsFixed(3)"
    )
    expect(
      await answer(wallet, recovery.address, "startRecovery", { ...configOf(1, [b]), threshold: 2 })
    ).toBe("InvalidThreshold(2)")
  })

  test("gives a passkey wallet of which the passkey is lost back to its holder", async () => {
    const [lost, found] = [newPasskey(), newPasskey()]
    wallet = await createWallet(chain, "v0.7", "lost passkey", configOf(5, [], [lost]))
    await selfCall(wallet, (hash) => passkeyProof(hash, lost), "setRecovery", recovery.address, 2 * day)
    await start(configOf(5, [], [found]))
    await wait(2 * day)
    await send(recovery.connect(chain.provider), wallet, "finishRecovery", configOf(5, [], [found]))
    const done = await selfCall(wallet, (hash) => passkeyProof(hash, found), "setRecovery", zeroAddress, 0)
    expect(done.success).toBe(true)
  })
})
