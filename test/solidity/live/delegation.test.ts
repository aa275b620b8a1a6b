import { type BaseWallet, concat, Wallet } from "ethers"
import { afterAll, beforeAll, expect, test } from "vitest"
import { revertOf } from "../../support/suite/Calls.js"
import { at, type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf } from "../../support/suite/Keys.js"
import { configurationOf, createWallet, walletAbi } from "../../support/suite/Ops.js"
import { mined } from "../../support/suite/Receipt.js"

/** EOAs that delegate their code by a transaction of type 4 (EIP-7702). */

let chain: Chain
beforeAll(async () => {
  chain = await startChain(["--hardfork", "prague"])
})
afterAll(() => chain.stop())

const owner = devKey(20)
const initialize = walletAbi.encodeFunctionData("initialize", [configOf(1, [devKey(21)]), devKey(21).address])

/** The EOA's code is that of this contract from now on. Somebody else pays. */
const delegate = async (eoa: BaseWallet, contract: string) => {
  const nonce = await chain.provider.getTransactionCount(eoa.address)
  const authorization = await eoa.authorize({ address: contract, chainId: chain.chainId, nonce })
  await mined(
    await chain.stranger.sendTransaction({
      type: 4,
      to: chain.stranger.address,
      authorizationList: [authorization]
    })
  )
  expect(await chain.provider.getCode(eoa.address)).toBe(concat(["0xef0100", contract]).toLowerCase())
}

/** What strangers, the EOA itself and an EntryPoint are told that initialise it. */
const refusals = async (eoa: string) =>
  Promise.all(
    [chain.stranger.address, eoa, chain.suite.factory].map((from) =>
      revertOf(chain, { from, to: eoa, data: initialize }, walletAbi)
    )
  )

test("an EOA that delegates to the implementation is initialised by nobody", async () => {
  const eoa = Wallet.createRandom().connect(chain.provider)
  await chain.fund(eoa.address)
  await delegate(eoa, chain.suite.implementation)
  expect(await refusals(eoa.address)).toEqual(Array(3).fill("DelegatedAccount()"))
  expect(await configurationOf(at("Wallet", eoa.address, chain))).toMatchObject({ configNonce: 0n })
})

test("nor is one that delegates to a proxy, new or a wallet's", async () => {
  const bare = await (await create("WalletProxy", [chain.suite.beacon, "0x"], chain.stranger)).getAddress()
  const wallet = await createWallet(chain, "v0.7", "delegated to", configOf(1, [owner]))
  for (const proxy of [bare, await wallet.getAddress()]) {
    const eoa = Wallet.createRandom().connect(chain.provider)
    await chain.fund(eoa.address)
    await delegate(eoa, proxy)
    expect(await refusals(eoa.address)).toEqual(Array(3).fill("DelegatedAccount()"))
  }
})

test("a proxy that is no delegation is initialised as ever, in its constructor too", async () => {
  for (const data of ["0x", initialize]) {
    const made = await create("WalletProxy", [chain.suite.beacon, data], chain.stranger)
    const to = await made.getAddress()
    if (data === "0x") await mined(await chain.stranger.sendTransaction({ to, data: initialize }))
    expect(await configurationOf(at("Wallet", to, chain))).toMatchObject({ configNonce: 1n })
  }
})
