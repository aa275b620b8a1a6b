import * as Either from "effect/Either"
import { Contract, Interface } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { type Version, versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as L1Fee from "../../../src/domain/erc4337/gas/L1Fee.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { npmInterface } from "../../support/lens/Abis.js"
import { compileBeside } from "../../support/lens/Solidity.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const { abi, code } = compileBeside("GasPriceOracle.sol")("GasPriceOracle")
const gwei = 10n ** 9n

describe.each(versions)("the layer 1 fee of an OP-stack chain on EntryPoint %s", (version: Version) => {
  let stack: Stack
  let oracle: Contract
  let token: Address.Address
  let exchanges: Array<ReadonlyArray<string>> = []
  const lines: Array<string> = []

  const setPrice = async (wei: bigint) => {
    await (await oracle.getFunction("setPrice")(wei)).wait()
  }

  beforeAll(async () => {
    stack = await startStack({
      entryPoint: version,
      profile: { l1Fee: "op-stack" },
      onExchange: (methods) => exchanges.push(methods)
    })
    const sent = await stack.faucet.sendTransaction({ data: code })
    const deployed = (await sent.wait())?.contractAddress
    await stack.provider.send("anvil_setCode", [L1Fee.oracle, await stack.provider.getCode(String(deployed))])
    oracle = new Contract(L1Fee.oracle, new Interface(abi), stack.faucet)
    await setPrice(20n * gwei)
    token = Address.unsafe(await stack.token.getAddress())
    for (const wallet of await stack.create("one", "two", "three", "four", "five"))
      await stack.mint(wallet, 1_000n)
  })
  beforeEach(async () => {
    await setPrice(20n * gwei)
    exchanges = []
  })
  afterAll(async () => {
    console.log(`paid for layer 1, EntryPoint ${version}\n${lines.join("\n")}`)
    await stack.stop()
  })

  const transfer = (salt: string, amount = "1"): Operation => ({
    salt,
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [`0x${"d1".repeat(20)}`, amount]
  })
  const execute = (...operations: ReadonlyArray<Operation>) =>
    ExecuteOperations.run(stack.caller(), { operations, settings: stack.settings })

  /** What the ops of a transaction paid, and what the transaction cost on both layers, by the chain's own word. */
  const account = async (txHash: string) => {
    const receipt = await stack.provider.getTransactionReceipt(txHash)
    if (receipt === null) throw new Error("not mined")
    const raw = await stack.provider.send("eth_getRawTransactionByHash", [txHash])
    const paid = receipt.logs.reduce((sum, log) => {
      const event = npmInterface(version, "EntryPoint").parseLog(log)
      return event?.name === "UserOperationEvent" ? sum + BigInt(event.args.actualGasCost) : sum
    }, 0n)
    const data: bigint = await oracle.getFunction("getL1Fee")(raw)
    const l1Fee = data + BigInt(await oracle.getFunction("getOperatorFee")(receipt.gasUsed))
    return { paid, l1Fee, l2Fee: receipt.gasUsed * receipt.gasPrice }
  }

  it.each([
    ["an op alone", 1, 1n],
    ["an op alone, layer 1 at 20 gwei", 1, 20n * gwei],
    ["an op alone, layer 1 at 400 gwei", 1, 400n * gwei],
    ["a bundle of five, layer 1 at 20 gwei", 5, 20n * gwei]
  ])("%s pays back what its transaction costs on both layers", async (name, count, price) => {
    await setPrice(price)
    const salts = ["one", "two", "three", "four", "five"].slice(0, count)
    const { status, txHash } = await stack.ask(execute(...salts.map((salt) => transfer(salt))))
    expect(status).toBe(1)
    const { l1Fee, l2Fee, paid } = await account(txHash)
    lines.push(`  ${name}: paid ${paid}, layer 2 ${l2Fee}, layer 1 ${l1Fee}`)
    expect(paid).toBeGreaterThanOrEqual(l2Fee + l1Fee)
    // A fifth of margin, the base fee's fall by an eighth; the frame of a transaction for each op of a bundle.
    expect(paid - l2Fee).toBeLessThanOrEqual((l1Fee * (count === 1 ? 14n : 22n)) / 10n + l2Fee / 4n)
  })

  it("is paid back to the service's own EOA, which submits nothing that was estimated when it was cheap", async () => {
    const { entryPoint, rpc } = stack.settings
    const handed = async () => {
      const { userOps } = await stack.ask(
        EstimateGas.run(stack.caller(), { operations: [transfer("one")], settings: { rpc, entryPoint } })
      )
      return ExecuteEncoded.run(stack.caller(), {
        operations: userOps.map(({ encodedUserOp, signingHash, userOpHash }) => ({
          encodedUserOp: Hex.unsafe(encodedUserOp),
          userOpHash: Hex.unsafe32(userOpHash),
          walletCustody: 1,
          signature: Hex.unsafe(stack.signer.signingKey.sign(signingHash).serialized)
        })),
        settings: { rpc, entryPoint }
      })
    }
    const { txHash } = await stack.ask(await handed())
    const { l1Fee, l2Fee, paid } = await account(txHash)
    expect(l1Fee).toBeGreaterThan(0n)
    expect(paid).toBeGreaterThanOrEqual(l1Fee + l2Fee)
    const cheap = await handed()
    await setPrice(40n * gwei)
    expect(await stack.refused(cheap)).toMatchObject({
      code: "submission_unpaid",
      message: "op does not pay for its submission"
    })
  })

  it.each([
    ["for each unit of gas", 5n * 10n ** 14n, 0n],
    ["for each transaction", 0n, 10n ** 14n],
    ["for both", 10n ** 14n, 10n ** 13n]
  ])("what the chain's operator takes is paid back too: %s", async (_, scalar, constant) => {
    const setOperator = async (...fee: ReadonlyArray<bigint>) => {
      await (await oracle.getFunction("setOperator")(...fee)).wait()
    }
    await setPrice(0n)
    await setOperator(scalar, constant)
    try {
      const { status, txHash } = await stack.ask(execute(transfer("one")))
      expect(status).toBe(1)
      const { l1Fee, l2Fee, paid } = await account(txHash)
      expect(l1Fee).toBeGreaterThan(10n ** 13n)
      expect(paid).toBeGreaterThanOrEqual(l2Fee + l1Fee)
    } finally {
      await setOperator(0n, 0n)
    }
  })

  it("creations pay it too", async () => {
    await stack.fund(stack.predict("new"), 10n ** 18n)
    const { status, txHash } = await stack.ask(
      CreateWallets.run(stack.caller(), {
        accounts: [{ salt: "new", walletCustody: 1 }],
        settings: stack.settings
      })
    )
    expect(status).toBe(1)
    const { l1Fee, l2Fee, paid } = await account(txHash)
    expect(paid).toBeGreaterThanOrEqual(l2Fee + l1Fee)
  })

  it("costs no round trip of its own", async () => {
    for (const wallet of await stack.create("asked once")) await stack.mint(wallet, 1_000n)
    await stack.ask(execute(transfer("asked once")))
    exchanges = []
    await stack.ask(execute(transfer("asked once")))
    const polls = /^eth_getTransactionReceipt|^eth_getBlockByNumber/
    const own = exchanges.filter((methods) => !methods.every((method) => polls.test(method)))
    expect(own).toHaveLength(4)
    // The op was measured in the first exchange; the second asks the oracle, of the bytes that the measurement gave.
    expect([...(own[1] ?? [])].sort()).toEqual(["eth_call", "eth_call", "eth_call", "eth_getBlockByNumber"])
  })

  it("is in the preVerificationGas that /estimateGas hands out, more when layer 1 is dearer", async () => {
    const preVerificationGas = async (price: bigint): Promise<bigint> => {
      await setPrice(price)
      const { userOps } = await stack.ask(
        EstimateGas.run(stack.caller(), { operations: [transfer("one")], settings: stack.settings })
      )
      const encoded = Hex.unsafe(userOps[0]?.encodedUserOp ?? "")
      return Either.getOrThrow(UserOperation.decode(version, encoded)).preVerificationGas
    }
    const none = await preVerificationGas(0n)
    const some = await preVerificationGas(20n * gwei)
    const more = await preVerificationGas(200n * gwei)
    expect(none).toBeLessThan(70_000n)
    expect(some).toBeGreaterThan(none + 50_000n)
    expect(more - none).toBeGreaterThan((some - none) * 9n)
  })

  it("is what the submitting EOA must hold beside the gas: without it nothing is sent", async () => {
    await setPrice(0n)
    const { txHash } = await stack.ask(execute(transfer("one")))
    const sent = await stack.provider.getTransaction(txHash)
    if (sent?.maxFeePerGas == null) throw new Error("not sent")
    const before = await stack.provider.getBalance(stack.signer.address)
    const enough = 2n * sent.gasLimit * sent.maxFeePerGas
    await stack.fund(stack.signer.address, enough)
    try {
      expect((await stack.ask(execute(transfer("one")))).status).toBe(1)
      await stack.fund(stack.signer.address, enough)
      await setPrice(400n * gwei)
      const failure = await stack.refused(execute(transfer("one")))
      expect(failure).toMatchObject({ code: "outcome_unknown", extra: { txHash: "" } })
    } finally {
      await stack.fund(stack.signer.address, before)
    }
  })

  it("above all that a transaction may cost is refused: nobody's node makes a wallet pay that", async () => {
    for (const price of [10n ** 18n, 2n ** 240n]) {
      await setPrice(price)
      const failure = await stack.refused(execute(transfer("one")))
      expect(failure).toMatchObject({ code: "fees_above_cap" })
    }
  })

  it("is 422 where nobody tells it", async () => {
    const installed = await stack.provider.getCode(L1Fee.oracle)
    await stack.provider.send("anvil_setCode", [L1Fee.oracle, "0x"])
    const failure = await stack.refused(execute(transfer("one")))
    await stack.provider.send("anvil_setCode", [L1Fee.oracle, installed])
    expect(failure).toMatchObject({
      code: "node_refused",
      details: [{ message: expect.stringContaining("GasPriceOracle") }]
    })
  })
})
