import { readdirSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { id, keccak256, toBeHex } from "ethers"
import { describe, expect, test } from "vitest"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { addressOf, deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { deployEntryPoints, entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { deploySuite, suiteOf } from "../../../src/hosts/cli/deploy/Suite.js"
import { devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, newPasskey } from "../../support/suite/Keys.js"
import { createWallet } from "../../support/suite/Ops.js"
import { use } from "../../support/Use.js"

const chain = use(startChain)

const keys = () => ({
  deployer: chain.deployer.address,
  owner: chain.factoryOwner.address,
  beaconOwner: chain.beaconOwner.address,
  sponsor: chain.sponsor.address
})

test("sends nothing when every contract exists, at predictable addresses", async () => {
  const before = await chain.provider.getBlockNumber()
  expect(await deployEntryPoints(chain.stranger)).toEqual(entryPoints)
  expect(await deploySuite(chain.provider, keys())).toEqual(chain.suite)
  expect(await chain.provider.getBlockNumber()).toBe(before)
  expect(suiteOf(keys())).toEqual(chain.suite)
})

test("gives another factory and beacon to other keys, on the same implementation", () => {
  const { address } = chain.stranger
  const other = suiteOf({ ...keys(), deployer: address, beaconOwner: address })
  expect(other.implementation).toBe(chain.suite.implementation)
  expect(other.beacon).not.toBe(chain.suite.beacon)
  expect(other.factory).not.toBe(chain.suite.factory)
  const zeros = `0x${"00".repeat(31)}`
  expect(addressOf(initCode("OperationLedger"), `${zeros}00`)).toBe(chain.suite.ledger)
  expect(addressOf(initCode("OperationLedger"), `${zeros}01`)).not.toBe(chain.suite.ledger)
})

test("names the missing or failing contracts", async () => {
  const salt = `0x${"00".repeat(32)}`
  await expect(deploy(chain.stranger, "0x5f5ffd", salt)).rejects.toThrow()
  await expect(deploy(chain.stranger.connect(null), "0x00", salt)).rejects.toThrow("no provider")
})

test("every contract fits into the code size limit of 24,576 bytes", () => {
  const folder = fileURLToPath(new URL("../../../contracts/artifacts/", import.meta.url))
  const sizes = readdirSync(folder).map((file) => artifact(file.replace(".json", "")).deployedBytecode.length)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(2 + 2 * 24_576)
})

/** Every address ever predicted depends on the creation code, which includes these 81 bytes, written by hand. */
test("the proxy has the code of its first release, around the beacon's address", async () => {
  expect(walletProxyCreationCode).toBe(artifact("WalletProxy").bytecode)
  expect(keccak256(walletProxyCreationCode)).toBe(
    "0x3b482436329e7ac67fc5a43a9eeffc09ecc981f05910612232a779e6d83a6b69"
  )
  const wallet = await createWallet(chain, "v0.7", "proxy", configOf(1, [devKey(20)]))
  const beacon = chain.suite.beacon.slice(2).toLowerCase()
  const runtime = `0x36600557005b635c60da1b5f5260205f6004601c73${beacon}5afa601f3d111680156042575f51365f5f375f5f365f845af45b3d5f5f3e604d573d5ffd5b3d5ff3`
  expect(await chain.provider.getCode(await wallet.getAddress())).toBe(runtime)
})

describe("a wallet's storage", () => {
  /** The base slot of an ERC-7201 namespace. */
  const namespace = (name: string): bigint => BigInt(keccak256(toBeHex(BigInt(id(name)) - 1n, 32))) & ~0xffn
  const slot = async (wallet: string, name: string, offset: number): Promise<string> =>
    chain.provider.getStorage(wallet, namespace(name) + BigInt(offset))
  const word = (hex: string): string => `0x${hex.slice(2).toLowerCase().padStart(64, "0")}`

  test("a wallet's storage is where its ERC-7201 namespaces say, one slot for one owner", async () => {
    const owner = devKey(20)
    const wallet = await createWallet(chain, "v0.7", "storage", configOf(1, [owner]))
    const address = await wallet.getAddress()
    // Owner, configNonce 1, no passkey, one owner, threshold 1, custody 1.
    const packed = `${owner.address}${"01".padStart(16, "0")}00010101`
    expect(await slot(address, "castellan.wallet", 0)).toBe(word(packed))
    for (let offset = 1; offset < 50; offset += 1)
      expect(await slot(address, "castellan.wallet", offset)).toBe(word("0x"))
    for (const offset of [0, 1]) {
      expect(await slot(address, "castellan.wallet.recovery", offset)).toBe(word("0x"))
      expect(await chain.provider.getStorage(address, offset)).toBe(word("0x"))
    }
  })

  test("a wallet's storage holds further owners and passkeys in the slots after it", async () => {
    const passkey = newPasskey()
    const config = configOf(4, [devKey(20), devKey(21)], [passkey], 2)
    const address = await (await createWallet(chain, "v0.7", "slots", config)).getAddress()
    const at = [1, 16, 17].map((offset) => slot(address, "castellan.wallet", offset))
    const { x, y } = passkey.publicKey
    expect(await Promise.all(at)).toEqual([word(config.owners[1] ?? ""), x, y])
  })
})
