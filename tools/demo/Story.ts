import { randomBytes } from "node:crypto"
import {
  AbiCoder,
  Contract,
  concat,
  formatEther,
  getCreate2Address,
  type JsonRpcProvider,
  keccak256,
  NonceManager,
  parseEther,
  toUtf8Bytes,
  Wallet
} from "ethers"
import { artifact } from "../../src/hosts/cli/deploy/Artifacts.js"
import type { DevInfo } from "../../src/hosts/cli/dev/DevStack.js"
import { type CountingProxy, cost } from "../CountingProxy.js"
import type { Client, Created, Executed, Log } from "./Client.js"
import type { Report } from "./Report.js"

export interface Stage {
  readonly info: DevInfo
  readonly call: Client
  /** The chain itself, bypassing the service. */
  readonly provider: JsonRpcProvider
  readonly proxy: CountingProxy
  readonly report: Report
}

const custody = 1
const coder = AbiCoder.defaultAbiCoder()
const deposit = parseEther("1")
const minted = 1_000n
const moved = 250n
/** Index of the wallet that transfers more than it has. */
const greedy = 3

/** Wallet address by the published formula, without the service's code. */
const addressOf = (salt: string, { settings }: DevInfo): string =>
  getCreate2Address(
    settings.factory,
    keccak256(coder.encode(["bytes32", "uint256"], [keccak256(toUtf8Bytes(salt)), custody])),
    keccak256(
      concat([
        settings.beaconAdminCreationCode,
        coder.encode(["address", "bytes"], [settings.beaconAdminAddress, "0x"])
      ])
    )
  )

const elements = <E>(returnData: ReadonlyArray<Readonly<Record<string, E>>>): ReadonlyArray<E | undefined> =>
  returnData.map((element, index) => element[String(index)])

const transfers = (logs: ReadonlyArray<Log>, token: string) =>
  logs
    .filter(({ address, eventName }) => address === token && eventName === "Transfer")
    .map(({ args }) => `${args.from} ${args.to} ${args.value}`)

const printCost = ({ proxy, report }: Stage, what: string) => {
  const { calls, methods, polls, roundTrips } = cost(proxy.take())
  const list = [...methods]
    .map(([method, count]) => (count === 1 ? method : `${method} x${count}`))
    .join(", ")
  report.note(
    `${what}: ${roundTrips} HTTP round trips with ${calls} JSON-RPC calls (${list}), ${polls} polls`
  )
}

/** Predict, fund, create, mint, transfer, receipt: five wallets from their salts to their tokens. */
export const run = async (stage: Stage): Promise<void> => {
  const { call, info, provider, proxy, report } = stage
  const { settings } = info
  const token = new Contract(info.token, artifact("TestToken").abi, provider)
  const balanceOf = (holder: string): Promise<bigint> => token.getFunction("balanceOf")(holder)
  const suffix = randomBytes(4).toString("hex")
  const salts = [1, 2, 3, 4, 5].map((n) => `demo-${suffix}-${n}`)
  const accounts = salts.map((salt) => ({ salt, walletCustody: custody }))

  report.step("predict five wallets from their salts")
  const predicted = await call("/predict", { accounts, settings })
  const wallets = predicted.map(({ wallet }) => wallet)
  const formula = salts.map((salt) => addressOf(salt, info))
  report.check("the addresses are those of the CREATE2 formula", wallets.join() === formula.join(), wallets)
  const before = await Promise.all(wallets.map((wallet) => provider.getCode(wallet)))
  report.check(
    "none of them has code yet",
    before.every((code) => code === "0x")
  )

  report.step(`fund each with ${formatEther(deposit)} of the native coin`)
  const faucet = new NonceManager(new Wallet(info.faucetPrivateKey, provider))
  const sent = await Promise.all(wallets.map((to) => faucet.sendTransaction({ to, value: deposit })))
  await Promise.all(sent.map((transaction) => transaction.wait()))
  const funds = await Promise.all(wallets.map((wallet) => provider.getBalance(wallet)))
  report.check(
    "the chain shows the balances",
    funds.every((balance) => balance === deposit),
    funds
  )

  report.step("create all five in one transaction")
  const created = await call("/create", { accounts, settings })
  const createdElements = elements<Created>(created.returnData)
  report.note(`transaction ${created.txHash}, gas ${created.gasUsed}`)
  report.check("status is 1: every wallet was deployed", created.status === 1, created)
  report.check("it took one transaction", created.txHashes.length === 1, created.txHashes)
  report.check(
    "returnData has salt and wallet of each, in order",
    createdElements.every((one, n) => one?.salt === salts[n] && one?.wallet === wallets[n]),
    createdElements
  )
  const creation = await provider.getTransactionReceipt(created.txHash)
  report.check("the chain has its receipt, with success", creation?.status === 1)
  const codes = await Promise.all(wallets.map((wallet) => provider.getCode(wallet)))
  report.check(
    "the chain has code at all five addresses",
    codes.every((code) => code.length > 2)
  )

  report.step(`mint ${minted} test tokens to each, by an operation of each wallet`)
  proxy.take()
  const mint = await call("/execute", {
    operations: wallets.map((wallet) => ({
      wallet,
      walletCustody: custody,
      to: info.token,
      funcSignature: "mint(address,uint256)",
      funcParams: [wallet, String(minted)]
    })),
    settings
  })
  printCost(stage, "/execute of 5")
  report.note(`transaction ${mint.txHash}, gas ${mint.gasUsed}`)
  report.check("status is 1: all operations succeeded", mint.status === 1, mint)
  const afterMint = await Promise.all(wallets.map(balanceOf))
  report.check(
    "the token shows the balances",
    afterMint.every((balance) => balance === minted),
    afterMint
  )

  const recipient = Wallet.createRandom().address
  report.step(`transfer ${moved} from each; wallet ${greedy + 1} asks for more than it has`)
  const transfer = await call("/execute", {
    operations: wallets.map((wallet, n) => ({
      wallet,
      walletCustody: custody,
      to: info.token,
      funcSignature: "transfer(address,uint256)",
      funcParams: [recipient, String(n === greedy ? minted + 1n : moved)]
    })),
    settings: { ...settings, useABI: artifact("TestToken").abi }
  })
  printCost(stage, "/execute of 5, one of which fails")
  const results = elements<Executed>(transfer.returnData)
  const failure = results[greedy]?.error ?? ""
  report.note(`transaction ${transfer.txHash}, gas ${transfer.gasUsed}`)
  report.check("status is 4: partially executed", transfer.status === 4, transfer)
  report.check(
    "every other operation succeeded, and that one did not",
    results.every((result, n) => result?.success === (n !== greedy)),
    results
  )
  report.note(`it failed with ${failure}`)
  report.check("its error is decoded", failure.includes("ERC20InsufficientBalance"), failure)
  const afterTransfer = await Promise.all(wallets.map(balanceOf))
  report.check(
    "the token shows what each has left",
    afterTransfer.every((balance, n) => balance === (n === greedy ? minted : minted - moved)),
    afterTransfer
  )
  report.check("the token shows what arrived", (await balanceOf(recipient)) === 4n * moved)

  report.step("transfer from one wallet alone")
  const single = await call("/execute", {
    operations: [
      {
        salt: salts[0],
        walletCustody: custody,
        to: info.token,
        funcSignature: "transfer(address,uint256)",
        funcParams: [recipient, "1"]
      }
    ],
    settings
  })
  printCost(stage, "/execute of 1")
  report.check(
    "status is 1, and the token shows it",
    single.status === 1 && (await balanceOf(recipient)) === 4n * moved + 1n,
    single
  )

  report.step("the receipt, with decoded Transfer logs")
  const { receipts, requestStatus } = await call("/receipt", {
    txHashes: [transfer.txHash],
    rpc: settings.rpc
  })
  const seen = transfers(receipts[0]?.logs ?? [], info.token)
  const receipt = await provider.getTransactionReceipt(transfer.txHash)
  const onChain = (receipt?.logs ?? [])
    .filter(({ address }) => address === info.token)
    .map((log) => token.interface.parseLog(log))
    .filter((log) => log?.name === "Transfer")
    .map((log) => log?.args.join(" "))
  report.check("requestStatus is 200", requestStatus === 200, requestStatus)
  report.check("four Transfer logs are decoded", seen.length === 4, seen)
  report.check("they are what the chain's own receipt says", seen.join() === onChain.join(), {
    seen,
    onChain
  })
  report.check("/execute had returned the same", transfers(transfer.logs, info.token).join() === seen.join())

  report.step("results")
  report.table(
    ["salt", "wallet", "created", "minted", "transfer", "tokens left"],
    salts.map((salt, n) => [
      salt,
      wallets[n] ?? "",
      (codes[n] ?? "0x").length > 2 ? "yes" : "no",
      String(afterMint[n]),
      results[n]?.success === true ? `${moved}` : "refused",
      String(afterTransfer[n])
    ])
  )
}
