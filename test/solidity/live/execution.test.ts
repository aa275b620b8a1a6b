import { AbiCoder, Interface } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { revertData, revertOf } from "../../support/suite/Calls.js"
import { type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa } from "../../support/suite/Keys.js"
import {
  batch,
  createWallet,
  execute,
  handleOps,
  newOp,
  nonceOf,
  signOp,
  walletAbi
} from "../../support/suite/Ops.js"

let chain: Chain

/** Reverts with its calldata. */
const reverter = "0x00000000000000000000000000000000000e0e0e"

beforeAll(async () => {
  chain = await startChain()
  await chain.provider.send("anvil_setCode", [reverter, "0x365f5f37365ffd"])
})
afterAll(() => chain.stop())

const owner = devKey(20)
const recipient = "0x00000000000000000000000000000000000abcde"

describe.each(entryPointVersions)("on EntryPoint %s", (version) => {
  let address: string
  beforeAll(async () => {
    address = await (
      await createWallet(chain, version, `execution ${version}`, configOf(1, [owner]))
    ).getAddress()
    await (await chain.token.connect(chain.stranger).getFunction("mint").send(address, 1000n)).wait()
  })
  beforeEach(() => chain.fund(address, 10n ** 18n))

  const run = async (callData: string) => {
    const op = newOp(address, { nonce: await nonceOf(chain, version, address), callData })
    const landed = await handleOps(chain, version, [
      await signOp(chain, version, op, (hash) => ecdsa(hash, owner))
    ])
    return landed.outcomes[0]
  }
  const balances = async () => ({
    wei: await chain.provider.getBalance(recipient),
    tokens: BigInt(await chain.token.getFunction("balanceOf").staticCall(recipient))
  })
  const transfer = async (amount: bigint) => ({
    target: await chain.token.getAddress(),
    data: chain.token.interface.encodeFunctionData("transfer", [recipient, amount])
  })

  test("execute sends value and calls", async () => {
    const before = await balances()
    const { target, data } = await transfer(3n)
    expect(await run(execute(recipient, "0x", 5n))).toMatchObject({ success: true })
    expect(await run(execute(target, data))).toMatchObject({ success: true })
    expect(await balances()).toEqual({ wei: before.wei + 5n, tokens: before.tokens + 3n })
  })

  test("executeBatch makes its calls in order", async () => {
    const before = await balances()
    const calls = [{ target: recipient, value: 7n }, await transfer(1n), await transfer(2n)]
    expect(await run(batch(...calls))).toMatchObject({ success: true })
    expect(await run(batch())).toMatchObject({ success: true })
    expect(await balances()).toEqual({ wei: before.wei + 7n, tokens: before.tokens + 3n })
  })

  test("a batch of which one call fails does nothing, and says why", async () => {
    const before = await balances()
    const outcome = await run(
      batch(await transfer(1n), { target: reverter, data: "0xdeadbeef" }, await transfer(2n))
    )
    expect(outcome).toEqual({ sender: address, success: false, reason: "0xdeadbeef" })
    expect(await balances()).toEqual(before)
  })

  test("a target's revert data come through unchanged", async () => {
    for (const data of ["0x", "0x01", `0x08c379a0${"ab".repeat(700)}`])
      expect(await run(execute(reverter, data))).toEqual({ sender: address, success: false, reason: data })
  })

  test("return data come back as they are", async () => {
    const token = await chain.token.getAddress()
    const data = chain.token.interface.encodeFunctionData("balanceOf", [address])
    const call = (callData: string) =>
      chain.provider.call({ from: entryPoints[version], to: address, data: callData })
    const [one] = walletAbi.decodeFunctionResult("execute", await call(execute(token, data)))
    const balance = AbiCoder.defaultAbiCoder().encode(
      ["uint256"],
      [await chain.token.getFunction("balanceOf").staticCall(address)]
    )
    expect(one).toBe(balance)
    const many = walletAbi.decodeFunctionResult(
      "executeBatch",
      await call(batch({ target: token, data }, { target: recipient }))
    )
    expect(many[0].toArray()).toEqual([balance, "0x"])
  })

  test("a call that the wallet cannot pay for fails alone", async () => {
    expect(await run(execute(recipient, "0x", 10n ** 20n))).toMatchObject({ success: false, reason: "0x" })
  })

  test("nobody but the EntryPoints and the wallet itself executes", async () => {
    const calls = [execute(recipient, "0x", 1n), batch({ target: recipient, value: 1n })]
    for (const data of calls) {
      for (const from of [chain.stranger.address, owner.address, chain.deployer.address, chain.suite.factory])
        expect(await revertOf(chain, { from, to: address, data }, walletAbi)).toBe(
          `AccountUnauthorized(${from})`
        )
      for (const from of [address, ...Object.values(entryPoints)])
        expect(await revertOf(chain, { from, to: address, data }, walletAbi)).toBe("none")
    }
  })

  test("the wallet takes its deposit out of an EntryPoint, by its own operation only", async () => {
    const to = chain.stranger.address
    const withdraw = (entryPoint: string) =>
      walletAbi.encodeFunctionData("withdrawTo", [entryPoint, to, 1000n])
    const own = entryPoints[version]
    const deposit = await chain
      .entryPoint(version)
      .connect(chain.stranger)
      .getFunction("depositTo")
      .send(address, { value: 10n ** 17n })
    await deposit.wait()
    const before = await chain.provider.getBalance(to)
    expect(await run(execute(address, withdraw(own)))).toMatchObject({ success: true })
    expect(await chain.provider.getBalance(to)).toBe(before + 1000n)
    for (const from of [own, owner.address, to])
      expect(await revertOf(chain, { from, to: address, data: withdraw(own) }, walletAbi)).toBe(
        `OnlySelf(${from})`
      )
    const forged = chain.suite.ledger
    expect(await revertOf(chain, { from: address, to: address, data: withdraw(forged) }, walletAbi)).toBe(
      `UnknownEntryPoint(${forged})`
    )
  })
})

describe("a wallet", () => {
  let address: string
  beforeAll(async () => {
    address = await (await createWallet(chain, "v0.7", "receives", configOf(1, [owner]))).getAddress()
  })

  test("takes plain value with 2,300 gas, without asking its beacon", async () => {
    const before = await chain.provider.getBalance(address)
    const sent = await chain.stranger.sendTransaction({ to: address, value: 9n, gasLimit: 21_000n + 2_300n })
    expect((await sent.wait())?.gasUsed).toBeLessThan(21_100n)
    expect(await chain.provider.getBalance(address)).toBe(before + 9n)
    await chain.provider.send("anvil_setCode", [chain.suite.beacon, "0x5ffd"])
    const beaconless = await chain.stranger.sendTransaction({ to: address, value: 9n, gasLimit: 23_300n })
    expect((await beaconless.wait())?.status).toBe(1)
    const call = { to: address, data: walletAbi.encodeFunctionData("validator") }
    expect(await revertData(chain, call)).toBe("0x")
    await chain.provider.send("anvil_setCode", [chain.suite.beacon, await beaconCode()])
    expect(await revertData(chain, call)).toBeUndefined()
  })

  const beaconCode = async () => {
    const twin = await create(
      "WalletBeacon",
      [chain.suite.implementation, chain.beaconOwner.address],
      chain.stranger
    )
    return chain.provider.getCode(await twin.getAddress())
  }

  test("takes ERC-721 and ERC-1155 tokens", async () => {
    const receivers = new Interface([
      "function onERC721Received(address,address,uint256,bytes) returns (bytes4)",
      "function onERC1155Received(address,address,uint256,uint256,bytes) returns (bytes4)",
      "function onERC1155BatchReceived(address,address,uint256[],uint256[],bytes) returns (bytes4)"
    ])
    const calls = [
      ["onERC721Received", [address, address, 1n, "0x"]],
      ["onERC1155Received", [address, address, 1n, 1n, "0x"]],
      ["onERC1155BatchReceived", [address, address, [1n], [1n], "0x"]]
    ] as const
    for (const [name, args] of calls) {
      const data = receivers.encodeFunctionData(name, args)
      expect((await chain.provider.call({ to: address, data })).slice(0, 10)).toBe(data.slice(0, 10))
    }
  })

  test("names its interfaces", async () => {
    const supports = async (id: string) => {
      const data = walletAbi.encodeFunctionData("supportsInterface", [id])
      return BigInt(await chain.provider.call({ to: address, data })) === 1n
    }
    // ERC-165, ERC-1271, ERC-721 and ERC-1155 receivers, IAccount of ERC-4337 v0.7
    for (const id of ["0x01ffc9a7", "0x1626ba7e", "0x150b7a02", "0x4e2312e0", "0x19822f7c"])
      expect(await supports(id)).toBe(true)
    for (const id of ["0xffffffff", "0x00000000"]) expect(await supports(id)).toBe(false)
  })

  test("reports its EntryPoints", async () => {
    for (const entryPoint of Object.values(entryPoints)) {
      const data = walletAbi.encodeFunctionData("isEntryPoint", [entryPoint])
      expect(BigInt(await chain.provider.call({ to: address, data }))).toBe(1n)
    }
    const data = walletAbi.encodeFunctionData("isEntryPoint", [chain.stranger.address])
    expect(BigInt(await chain.provider.call({ to: address, data }))).toBe(0n)
  })
})
