import { concat, type HDNodeWallet, Interface, id, toBeHex, zeroPadValue } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { revertData } from "../../support/suite/Calls.js"
import { type Chain, create, startChain } from "../../support/suite/Chain.js"
import { configOf } from "../../support/suite/Keys.js"
import { walletInitCode } from "../../support/suite/Layouts.js"
import { createWallet } from "../../support/suite/Ops.js"
import { mined } from "../../support/suite/Receipt.js"

/** The proxy's runtime, written by hand: docs/contracts.md and contracts/src/WalletProxy.sol say what every byte does. */

let chain: Chain
let proxy: string
beforeAll(async () => {
  chain = await startChain()
  proxy = await (await create("WalletProxy", [chain.suite.beacon, "0x"], chain.stranger)).getAddress()
})
afterAll(() => chain.stop())

const abi = new Interface(artifact("WalletProxy").abi)

/** Deploys runtime code as it stands. */
const deployed = async (runtime: string, from: HDNodeWallet = chain.stranger): Promise<string> => {
  const size = (runtime.length - 2) / 2
  const sent = await from.sendTransaction({
    data: concat(["0x61", toBeHex(size, 2), "0x80600a5f395ff3", runtime])
  })
  const { contractAddress } = await mined(sent)
  if (contractAddress === null) throw new Error("a contract")
  return contractAddress
}

/** A beacon that names this implementation. */
const beaconOf = (implementation: string) => deployed(concat(["0x73", implementation, "0x5f5260205ff3"]))

/** Returns 25 bytes. */
const short = "0x5f5f5260195ff3"

/** Of a proxy whose beacon behaves like this from its creation on. */
const proxyOf = async (beacon: string) =>
  (await create("WalletProxy", [beacon, "0x"], chain.stranger)).getAddress()

test("the runtime is 81 bytes around the beacon's address", async () => {
  const beacon = chain.suite.beacon.slice(2).toLowerCase()
  const runtime = `0x36600557005b635c60da1b5f5260205f6004601c73${beacon}5afa601f3d111680156042575f51365f5f375f5f365f845af45b3d5f5f3e604d573d5ffd5b3d5ff3`
  expect(await chain.provider.getCode(proxy)).toBe(runtime)
  expect((runtime.length - 2) / 2).toBe(81)
})

test("its creation tells explorers the beacon, as ERC-1967 has it", async () => {
  const wallet = await createWallet(chain, "v0.7", "recognised", configOf(1, [chain.stranger]))
  const logs = await chain.provider.getLogs({ address: await wallet.getAddress(), fromBlock: 0 })
  expect(logs[0]).toMatchObject({
    topics: [id("BeaconUpgraded(address)"), zeroPadValue(chain.suite.beacon.toLowerCase(), 32)],
    data: "0x"
  })
})

test("takes value with the 2,300 gas of a transfer, and never asks its beacon then", async () => {
  const before = await chain.provider.getBalance(proxy)
  const sent = await chain.stranger.sendTransaction({ to: proxy, value: 5n, gasLimit: 21_000n + 2_300n })
  const receipt = await mined(sent)
  expect(await chain.provider.getBalance(proxy)).toBe(before + 5n)
  // CALLDATASIZE, PUSH1, JUMPI, STOP.
  expect(Number(receipt.gasUsed)).toBe(21_000 + 2 + 3 + 10)
})

describe("a call with data", () => {
  /** Returns the calldata, and reverts with it when its first byte is not zero. */
  const echo = "0x365f5f37365f5f355f1a600e57f35bfd"

  test("is answered by the implementation in the proxy's place, whatever its length", async () => {
    const wallet = new Interface(artifact("Wallet").abi)
    const answer = await chain.provider.call({
      to: proxy,
      data: wallet.encodeFunctionData("eip712Domain")
    })
    expect(wallet.decodeFunctionResult("eip712Domain", answer).verifyingContract).toBe(proxy)
    const echoing = await proxyOf(await beaconOf(await deployed(echo)))
    for (const size of [1, 3, 4, 31, 32, 33, 1_000, 20_000]) {
      const data = `0x00${"ab".repeat(size - 1)}`
      expect(await chain.provider.call({ to: echoing, data })).toBe(data)
    }
  })

  test("fails with what the implementation fails with", async () => {
    const echoing = await proxyOf(await beaconOf(await deployed(echo)))
    for (const size of [1, 4, 32, 1_000]) {
      const data = `0x${"cd".repeat(size)}`
      expect(await revertData(chain, { to: echoing, data })).toBe(data)
    }
  })

  test("fails when the beacon fails, with its reason, or names nothing", async () => {
    const beacon = await beaconOf(await deployed(echo))
    const echoing = await proxyOf(beacon)
    const behaving = async (runtime: string) => {
      await chain.provider.send("anvil_setCode", [beacon, runtime])
      return revertData(chain, { to: echoing, data: "0x00" })
    }
    expect(await behaving(short)).toBe("0x".padEnd(2 + 2 * 25, "0"))
    expect(await behaving("0x00")).toBe("0x")
    expect(await behaving("0x")).toBe("0x")
    const reason = "0xdeadbeef"
    expect(await behaving(`0x63${reason.slice(2)}5f526004601cfd`)).toBe(reason)
  })
})

test("a beacon that is none is refused", async () => {
  const silent = await deployed("0x00")
  const failing = await deployed("0x5f5ffd")
  const naming = await beaconOf(chain.stranger.address)
  for (const beacon of [silent, await deployed(short), failing, naming, chain.stranger.address]) {
    const attempt = chain.provider.call({ data: walletInitCode(walletProxyCreationCode, beacon) })
    await expect(attempt).rejects.toMatchObject({ data: abi.encodeErrorResult("InvalidBeacon", [beacon]) })
  }
})
