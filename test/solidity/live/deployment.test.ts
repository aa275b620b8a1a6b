import { getCreateAddress, type HDNodeWallet, Interface, id, keccak256, toBeHex, ZeroAddress } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { addressOf, deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import {
  deployEntryPoints,
  entryPoints,
  entryPointVersions
} from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, suiteOf } from "../../../src/hosts/cli/deploy/Suite.js"
import { revertOf, senderCreators } from "../../support/suite/Calls.js"
import { at, type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, newPasskey } from "../../support/suite/Keys.js"
import { walletInitCode } from "../../support/suite/Layouts.js"
import { createWallet } from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const keys = () => ({
  deployer: chain.deployer.address,
  owner: chain.factoryOwner.address,
  beaconOwner: chain.beaconOwner.address,
  sponsor: chain.sponsor.address
})
const proxyAbi = new Interface(artifact("WalletProxy").abi)

describe("deployment", () => {
  test("sends nothing when everything stands already", async () => {
    const before = await chain.provider.getBlockNumber()
    expect(await deployEntryPoints(chain.stranger)).toEqual(entryPoints)
    expect(await deploySuite(chain.provider, keys())).toEqual(chain.suite)
    expect(await chain.provider.getBlockNumber()).toBe(before)
  })

  test("knows the addresses beforehand", () => {
    expect(suiteOf(keys())).toEqual(chain.suite)
  })

  test("gives another factory and beacon to other keys, on the same implementation", () => {
    const other = suiteOf({
      ...keys(),
      deployer: chain.stranger.address,
      beaconOwner: chain.stranger.address
    })
    expect(other.implementation).toBe(chain.suite.implementation)
    expect(other.beacon).not.toBe(chain.suite.beacon)
    expect(other.factory).not.toBe(chain.suite.factory)
  })

  test("says what is missing or failing", async () => {
    await expect(deploy(chain.stranger, "0x5f5ffd", `0x${"00".repeat(32)}`)).rejects.toThrow()
    await expect(deploy(chain.stranger.connect(null), "0x00", `0x${"00".repeat(32)}`)).rejects.toThrow(
      "no provider"
    )
  })

  test("an account that creates through the deterministic deployer cannot choose another's address", () => {
    const code = initCode("OperationLedger")
    expect(addressOf(code, `0x${"00".repeat(32)}`)).toBe(chain.suite.ledger)
    expect(addressOf(code, `0x${"00".repeat(31)}01`)).not.toBe(chain.suite.ledger)
  })
})

describe("the EntryPoints", () => {
  test("create their SenderCreator first", async () => {
    for (const version of entryPointVersions) {
      expect(getCreateAddress({ from: entryPoints[version], nonce: 1 })).toBe(senderCreators[version])
      expect(await chain.provider.getCode(senderCreators[version])).not.toBe("0x")
    }
    const named = new Interface(["function senderCreator() view returns (address)"])
    const data = named.encodeFunctionData("senderCreator")
    const answer = await chain.provider.call({ to: entryPoints["v0.8"], data })
    expect(named.decodeFunctionResult("senderCreator", answer)[0]).toBe(senderCreators["v0.8"])
  })
})

describe("the factory", () => {
  test("keeps its deployer in storage slot 0", async () => {
    expect(await chain.provider.getStorage(chain.suite.factory, 0)).toBe(toBeHex(chain.deployer.address, 32))
    expect(await chain.factory.getFunction("deployer").staticCall()).toBe(chain.deployer.address)
  })

  test("deploys the pinned proxy on its beacon", async () => {
    const code = walletInitCode(walletProxyCreationCode, chain.suite.beacon)
    expect(await chain.factory.getFunction("initCodeHash").staticCall()).toBe(keccak256(code))
    expect(await chain.factory.getFunction("beacon").staticCall()).toBe(chain.suite.beacon)
    expect(walletProxyCreationCode).toBe(artifact("WalletProxy").bytecode)
  })

  test("is renounced by nobody", async () => {
    const data = chain.factory.interface.encodeFunctionData("renounceOwnership")
    for (const { address } of [chain.factoryOwner, chain.stranger])
      expect(
        await revertOf(chain, { from: address, to: chain.suite.factory, data }, chain.factory.interface)
      ).toBe("OwnershipCannotBeRenounced()")
  })

  test("changes hands in two steps", async () => {
    const factory = chain.factory.connect(chain.factoryOwner)
    await (await factory.getFunction("transferOwnership").send(chain.stranger.address)).wait()
    expect(await chain.factory.getFunction("owner").staticCall()).toBe(chain.factoryOwner.address)
    await (await chain.factory.connect(chain.stranger).getFunction("acceptOwnership").send()).wait()
    expect(await chain.factory.getFunction("owner").staticCall()).toBe(chain.stranger.address)
  })
})

describe("a wallet's storage", () => {
  /** The base slot of an ERC-7201 namespace. */
  const namespace = (name: string): bigint => {
    const inner = toBeHex(BigInt(id(name)) - 1n, 32)
    return BigInt(keccak256(inner)) & ~0xffn
  }
  const slot = async (wallet: string, name: string, offset: bigint): Promise<string> =>
    chain.provider.getStorage(wallet, namespace(name) + offset)
  const word = (hex: string): string => `0x${hex.slice(2).toLowerCase().padStart(64, "0")}`

  test("is where its ERC-7201 namespaces say, one slot for one owner", async () => {
    const owner = devKey(20)
    const wallet = await createWallet(chain, "v0.7", "storage", configOf(1, [owner]))
    const address = await wallet.getAddress()
    // Owner, configNonce 1, no passkey, one owner, threshold 1, custody 1.
    const packed = `${owner.address}${"01".padStart(16, "0")}00010101`
    expect(await slot(address, "castellan.wallet", 0n)).toBe(word(packed))
    const offsets = Array.from({ length: 50 }, (_, i) => BigInt(i))
    for (const offset of offsets.slice(1))
      expect(await slot(address, "castellan.wallet", offset)).toBe(word("0x"))
    for (const offset of offsets.slice(0, 2)) {
      expect(await slot(address, "castellan.wallet.recovery", offset)).toBe(word("0x"))
      expect(await chain.provider.getStorage(address, offset)).toBe(word("0x"))
    }
  })

  test("holds further owners and passkeys in the slots after it", async () => {
    const [a, b, p] = [devKey(20), devKey(21), newPasskey()] as const
    const config = configOf(4, [a, b], [p], 2)
    const address = await (await createWallet(chain, "v0.7", "slots", config)).getAddress()
    expect(await slot(address, "castellan.wallet", 1n)).toBe(word(config.owners[1] ?? ""))
    expect(await slot(address, "castellan.wallet", 16n)).toBe(p.publicKey.x)
    expect(await slot(address, "castellan.wallet", 17n)).toBe(p.publicKey.y)
  })
})

describe("the proxy", () => {
  /** The pinned creation code: every address ever predicted depends on it. */
  const pinnedHash = "0x3b482436329e7ac67fc5a43a9eeffc09ecc981f05910612232a779e6d83a6b69"

  test("has the creation code of its first release", () => {
    expect(keccak256(walletProxyCreationCode)).toBe(pinnedHash)
  })

  test("takes no beacon without code or implementation", async () => {
    for (const beacon of [chain.stranger.address, chain.suite.ledger, chain.suite.implementation]) {
      const attempt = chain.provider.call({ data: walletInitCode(walletProxyCreationCode, beacon) })
      await expect(attempt).rejects.toMatchObject({
        data: proxyAbi.encodeErrorResult("InvalidBeacon", [beacon])
      })
    }
  })

  test("runs the call of its second argument on the implementation, and fails with it", async () => {
    const wallet = new Interface(artifact("Wallet").abi)
    const config = { custody: 1, threshold: 1, owners: [chain.stranger.address], passkeys: [] }
    const data = wallet.encodeFunctionData("initialize", [config, chain.deployer.address])
    const made = await create("WalletProxy", [chain.suite.beacon, data], chain.stranger)
    const proxy = at("Wallet", await made.getAddress(), chain)
    expect((await proxy.getFunction("configuration").staticCall())[1]).toBe(1n)
    const twice = wallet.encodeFunctionData("execute", [chain.stranger.address, 0n, "0x"])
    const failing = chain.provider.call({
      from: chain.deployer.address,
      data: initCode("WalletProxy", [chain.suite.beacon, twice])
    })
    await expect(failing).rejects.toMatchObject({
      data: wallet.encodeErrorResult("AccountUnauthorized", [chain.deployer.address])
    })
  })

  test("takes value at its creation only with a call", async () => {
    const call = {
      from: chain.stranger.address,
      data: initCode("WalletProxy", [chain.suite.beacon, "0x"]),
      value: 1n
    }
    await expect(chain.provider.call(call)).rejects.toMatchObject({
      data: proxyAbi.encodeErrorResult("NonPayable")
    })
  })
})

describe("the beacon", () => {
  test("replaces the code of every wallet, by its owner alone", async () => {
    const beacon = at("WalletBeacon", chain.suite.beacon, chain)
    const data = beacon.interface.encodeFunctionData("upgradeTo", [chain.suite.ledger])
    const owners = [chain.stranger, chain.deployer, chain.factoryOwner].map((key) => key.address)
    for (const from of [...owners, chain.suite.factory, chain.suite.implementation])
      expect(await revertOf(chain, { from, to: chain.suite.beacon, data }, beacon.interface)).toBe(
        `OwnableUnauthorizedAccount(${from})`
      )
    expect(
      await revertOf(
        chain,
        { from: chain.beaconOwner.address, to: chain.suite.beacon, data },
        beacon.interface
      )
    ).toBe("none")
  })

  test("changes its owner in two steps", async () => {
    const beacon = at("WalletBeacon", chain.suite.beacon, chain)
    const send = async (key: HDNodeWallet, name: string, ...args: ReadonlyArray<unknown>) =>
      (
        await beacon
          .connect(key)
          .getFunction(name)
          .send(...args)
      ).wait()
    const read = (name: string) => beacon.getFunction(name).staticCall()
    await send(chain.beaconOwner, "transferOwnership", chain.stranger.address)
    expect(await read("owner")).toBe(chain.beaconOwner.address)
    expect(await read("pendingOwner")).toBe(chain.stranger.address)
    const accept = beacon.interface.encodeFunctionData("acceptOwnership")
    const from = chain.deployer.address
    expect(await revertOf(chain, { from, to: chain.suite.beacon, data: accept }, beacon.interface)).toBe(
      `OwnableUnauthorizedAccount(${from})`
    )
    await send(chain.stranger, "acceptOwnership")
    expect(await read("owner")).toBe(chain.stranger.address)
    expect(await read("pendingOwner")).toBe(ZeroAddress)
    await send(chain.stranger, "transferOwnership", chain.beaconOwner.address)
    await send(chain.beaconOwner, "acceptOwnership")
    expect(await read("owner")).toBe(chain.beaconOwner.address)
  })

  test("is renounced by nobody", async () => {
    const beacon = at("WalletBeacon", chain.suite.beacon, chain)
    const data = beacon.interface.encodeFunctionData("renounceOwnership")
    for (const from of [chain.beaconOwner.address, chain.stranger.address])
      expect(await revertOf(chain, { from, to: chain.suite.beacon, data }, beacon.interface)).toBe(
        "OwnershipCannotBeRenounced()"
      )
  })
})
