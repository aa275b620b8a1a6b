import * as Result from "effect/Result"
import { Contract, hexlify, type Interface, id, randomBytes, Wallet } from "ethers"
import * as EstimateGas from "../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../src/application/endpoints/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../src/application/endpoints/operations/PasskeyHash.js"
import * as CreateWallets from "../src/application/endpoints/wallets/CreateWallets.js"
import type { Operation } from "../src/application/prepare/Operation.js"
import { type Version, versions } from "../src/domain/erc4337/EntryPoint.js"
import * as Percent from "../src/domain/erc4337/Percent.js"
import * as Hex from "../src/domain/primitives/Hex.js"
import { artifact } from "../src/hosts/cli/deploy/Artifacts.js"
import { entryPoints } from "../src/hosts/cli/deploy/EntryPoints.js"
import { npmInterface } from "../test/scenarios/lens/Abis.js"
import * as Authenticator from "../test/support/custody/Authenticator.js"
import { Address, type Stack, startStack } from "../test/support/stack/Stack.js"
import { assertion, configOf, ecdsa, indexIn } from "../test/support/suite/Keys.js"
import { mixedProof, saltHash } from "../test/support/suite/Layouts.js"

/**
 * `npm run bench:limits`: executes ops of every custody through the service with its default buffers, and compares their
 * gas limits with the used gas: median and maximum ratio per field and EntryPoint. `--buffers 0` disables the buffers.
 */

const at = process.argv.indexOf("--buffers")
const percent = Result.getOrThrow(Percent.from(process.argv[at + 1] ?? "50"))
const buffers = at < 0 ? {} : { percentUserOpGasOvershoot: percent, percentTxGasOvershoot: percent }

type Field = "call" | "verification" | "transaction" | "charged" | "prefund"
const fields: ReadonlyArray<readonly [Field, string]> = [
  ["call", "callGasLimit, to the gas of the call"],
  ["verification", "verification limits, the paymaster's with it, to the gas of the validation"],
  ["transaction", "gas limit of the transaction, to its gas"],
  ["charged", "charged gas of the ops, to the gas of their transaction"],
  ["prefund", "required prefund, to the charge of the op"]
]

interface Sample {
  readonly version: Version
  readonly field: Field
  readonly name: string
  readonly used: bigint
  readonly limit: bigint
}

const samples: Array<Sample> = []

interface Frame {
  readonly to?: string
  readonly input: string
  readonly gasUsed: string
  readonly calls?: ReadonlyArray<Frame>
}

const limitsOf = (version: Version, op: ReadonlyArray<unknown> & Record<string, never>) => {
  const { accountGasLimits, callGasLimit, paymasterAndData, preVerificationGas, verificationGasLimit } = op
  const paymaster = String(paymasterAndData)
  if (version === "v0.6") {
    const [call, verification] = [BigInt(callGasLimit ?? 0), BigInt(verificationGasLimit ?? 0)]
    const times = paymaster === "0x" ? 1n : 3n
    const preVerification = BigInt(preVerificationGas ?? 0)
    return { call, verification, preVerification, prefund: call + times * verification + preVerification }
  }
  const packed = BigInt(accountGasLimits ?? 0)
  const call = BigInt.asUintN(128, packed)
  const ofPaymaster = paymaster === "0x" ? 0n : BigInt(`0x${paymaster.slice(42, 74)}`)
  const ofPostOp = paymaster === "0x" ? 0n : BigInt(`0x${paymaster.slice(74, 106)}`)
  const verification = (packed >> 128n) + ofPaymaster
  const preVerification = BigInt(preVerificationGas ?? 0)
  return { call, verification, preVerification, prefund: call + verification + ofPostOp + preVerification }
}

/** Records the gas of a mined bundle. */
const sample = async (stack: Stack, version: Version, name: string, txHash: string) => {
  const { provider } = stack
  const entryPoint = entryPoints[version].toLowerCase()
  const abi: Interface = npmInterface(version, "EntryPoint")
  const [transaction, receipt, root] = await Promise.all([
    provider.getTransaction(txHash),
    provider.getTransactionReceipt(txHash),
    provider.send("debug_traceTransaction", [txHash, { tracer: "callTracer" }]) as Promise<Frame>
  ])
  if (transaction === null || receipt === null) throw new Error(`${name}: no transaction ${txHash}`)
  const [ops] = abi.decodeFunctionData("handleOps", transaction.data)
  const inner = (root.calls ?? []).filter(({ to }) => to === entryPoint)
  const charged = receipt.logs.flatMap((log) => {
    const event = log.address.toLowerCase() === entryPoint ? abi.parseLog(log) : null
    if (event?.name !== "UserOperationEvent") return []
    if (event.args.success !== true) throw new Error(`${name}: an op failed`)
    return [BigInt(event.args.actualGasUsed)]
  })
  // A bundle's similar ops form one sample.
  const sums = new Map<Field, { used: bigint; limit: bigint }>()
  const add = (field: Field, used: bigint, limit: bigint) => {
    const before = sums.get(field) ?? { used: 0n, limit: 0n }
    sums.set(field, { used: before.used + used, limit: before.limit + limit })
  }
  for (const [position, op] of [...ops].entries()) {
    const limits = limitsOf(version, op)
    const frame = inner[position]
    if (frame === undefined) throw new Error(`${name}: no frame of op ${position}`)
    const decoded = abi.decodeFunctionData("innerHandleOp", frame.input)
    const verified = BigInt(decoded.opInfo.preOpGas) - limits.preVerification
    const called = frame.calls?.find(({ to }) => to === String(op.sender).toLowerCase())
    add("verification", verified, limits.verification)
    if (called !== undefined && op.callData !== "0x") add("call", BigInt(called.gasUsed), limits.call)
    add("prefund", charged[position] ?? 0n, limits.prefund)
  }
  add(
    "charged",
    receipt.gasUsed,
    charged.reduce((sum, gas) => sum + gas, 0n)
  )
  add("transaction", receipt.gasUsed, transaction.gasLimit)
  for (const [field, sum] of sums) samples.push({ version, field, name, ...sum })
}

const fresh = () => Address.unsafe(hexlify(randomBytes(20)))
const alice = new Wallet(id("alice"))
const second = { clientId: "dev", versionId: "2" }
const ether = 10n ** 18n

const measure = async (stack: Stack, version: Version, suffix: string, few: boolean) => {
  const factory = new Contract(stack.suite.factory, artifact("WalletFactory").abi, stack.provider)
  const settings = { ...stack.settings, entryPoint: Address.unsafe(entryPoints[version]), ...buffers }
  const ownless = { rpc: settings.rpc, entryPoint: settings.entryPoint }
  const paymaster = { paymaster: Address.unsafe(stack.suite.paymaster) }
  const token = Address.unsafe(String(stack.token.target))
  const [phone, tablet] = [Authenticator.make(), Authenticator.make()]
  const passkeys = [phone, tablet].map(({ spki }) => spki.toString("base64"))
  const holder = fresh()
  await stack.mint(holder, 1n)

  const of = (wallet: string, to: Address.Address, rest: Partial<Operation> = {}): Operation => ({
    wallet: Address.unsafe(wallet),
    walletCustody: 0,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [to, "1"],
    ...rest
  })
  const hashOf = (name: string, answer: { readonly status: number; readonly txHash: string }) => {
    if (answer.status !== 1) throw new Error(`${name}: ${JSON.stringify(answer)}`)
    return answer.txHash
  }
  const execute = async (name: string, operations: ReadonlyArray<Operation>, more: object = {}) =>
    sample(
      stack,
      version,
      `${name}${suffix}`,
      hashOf(
        name,
        await stack.ask(
          ExecuteOperations.run(stack.caller(), { operations, settings: { ...settings, ...more } })
        )
      )
    )
  const encoded = async (
    name: string,
    operation: Operation,
    prove: (hash: string) => string,
    more: object = {}
  ) => {
    const { error, userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), { operations: [operation], settings: { ...settings, ...more } })
    )
    const [op] = userOps
    if (op === undefined) throw new Error(`${name}: ${error}`)
    const answer = await stack.ask(
      ExecuteEncoded.run(stack.caller(), {
        operations: [
          {
            encodedUserOp: Hex.unsafe(op.encodedUserOp),
            userOpHash: Hex.unsafe32(op.userOpHash),
            walletCustody: 0,
            signature: Hex.unsafe(prove(op.signingHash))
          }
        ],
        settings: { ...settings, ...more }
      })
    )
    await sample(stack, version, `${name}${suffix}`, hashOf(name, answer))
  }
  const byPasskey = async (name: string, operation: Operation, more: object = {}) => {
    const { results } = await stack.ask(
      PasskeyHash.run(stack.caller(), {
        operations: [operation],
        settings: { ...ownless, ...buffers, ...more } as never
      })
    )
    const op = results[0]
    if (op?.signingHash === undefined || op.signingHash === null) throw new Error(`${name}: ${op?.error}`)
    const answer = await stack.ask(
      ExecutePasskey.run(stack.caller(), {
        operations: [
          {
            encodedUserOp: Hex.unsafe(String(op.encodedUserOp)),
            userOpHash: Hex.unsafe32(String(op.userOpHash)),
            validationData: tablet.get(op.signingHash)
          }
        ],
        settings: { ...ownless, ...more }
      })
    )
    await sample(stack, version, `${name}${suffix}`, hashOf(name, answer))
  }
  const create = async (
    name: string,
    accounts: ReadonlyArray<Omit<CreateWallets.Request["accounts"][number], "salt">>,
    more: object = {}
  ) => {
    const named = accounts.map((account, n) => ({ ...account, salt: `${name} ${version} ${n}` }))
    const wallets = await Promise.all(
      named.map(
        ({ salt, walletCustody }): Promise<string> =>
          factory
            .getFunction("getAddress(bytes32,uint256,bool)")
            .staticCall(saltHash(salt), walletCustody, false)
      )
    )
    for (const wallet of wallets) {
      if (!("paymaster" in more)) await stack.fund(wallet, ether)
      await stack.mint(wallet, 1_000n)
    }
    const answer = await stack.ask(
      CreateWallets.run(stack.caller(), { accounts: named as never, settings: { ...settings, ...more } })
    )
    await sample(stack, version, `${name}${suffix}`, hashOf(name, answer))
    return wallets
  }

  const made = new Map<number, string>()
  const multisig = { signers: [alice.address, { clientId: "dev", versionId: "1" }], threshold: "2" }
  const accounts = [
    { walletCustody: 1 },
    { walletCustody: 2, passkeyPubKey: passkeys },
    { walletCustody: 3, ...multisig, signers: [...multisig.signers, second] },
    { walletCustody: 4, ...multisig, passkeyPubKey: passkeys, threshold: "3" },
    { walletCustody: 5, passkeyPubKey: passkeys }
  ] as unknown as ReadonlyArray<CreateWallets.Request["accounts"][number]>
  for (const account of accounts.filter(({ walletCustody }) => !few || walletCustody > 3))
    for (const [label, more] of [
      ["sponsored ", paymaster],
      ["", {}]
    ] as const) {
      const custody = account.walletCustody
      const [wallet] = await create(`${label}creation, custody ${custody}`, [account], more)
      made.set(custody, wallet ?? "")
    }
  const config = configOf(4, [alice, stack.signer as never], [phone.passkey, tablet.passkey], 3)
  for (const [label, more] of [
    ["", {}],
    ["sponsored ", paymaster]
  ] as const)
    for (const [custody, wallet] of made)
      for (const key of custody < 4 ? ["first key", "used key"] : ["a key"]) {
        const name = `${label}transfer, custody ${custody}, ${key}`
        const operation = of(wallet, holder)
        if (custody < 3) await execute(name, [operation], more)
        else if (custody === 3) await execute(name, [operation], { ...more, cosigners: [second] })
        else if (custody === 4)
          await encoded(
            name,
            operation,
            (hash) =>
              mixedProof(
                ecdsa(hash, stack.signer as never),
                [phone, tablet].map(({ passkey }) =>
                  assertion(hash, passkey, { index: indexIn(config, passkey) })
                )
              ),
            more
          )
        else await byPasskey(name, operation, more)
      }
  if (few) return
  const wallet = made.get(1) ?? ""
  await execute("transfer to a new holder", [of(wallet, fresh())])
  await execute("approve", [of(wallet, holder, { funcSignature: "approve(address,uint256)" })])
  const value = { funcSignature: "receive()", funcParams: [], value: 1n }
  await execute("value to an account", [
    of(wallet, holder, { to: Address.unsafe(stack.signer.address), ...value })
  ])
  await execute("value to a new account", [of(wallet, holder, { to: fresh(), ...value })])
  for (const size of [10, 40]) {
    const many = await create(
      `creation of ${size}`,
      Array.from({ length: size }, () => ({ walletCustody: 1 }) as never)
    )
    for (const key of ["first key", "used key"])
      await execute(
        `bundle of ${size}, ${key}`,
        many.map((each) => of(each, holder))
      )
  }
}

const ratio = ({ limit, used }: Sample): number => Number((limit * 10_000n) / (used || 1n)) / 10_000

const table = () =>
  [
    "| EntryPoint | field | samples | used, median | limit, median | ratio, median | ratio, maximum | of |",
    "|---|---|---|---|---|---|---|---|",
    ...versions.flatMap((version) =>
      fields.map(([field, title]) => {
        const own = samples.filter((one) => one.version === version && one.field === field)
        const sorted = [...own].sort((a, b) => ratio(a) - ratio(b))
        const median = (of: (one: Sample) => bigint) =>
          own.map(of).sort((a, b) => Number(a - b))[own.length >> 1] ?? 0n
        const [middle, last] = [sorted[sorted.length >> 1], sorted.at(-1)]
        if (middle === undefined || last === undefined) return ""
        return `| ${version} | ${title} | ${own.length} | ${median(({ used }) => used)} | ${median(({ limit }) => limit)} | ${ratio(middle).toFixed(2)} | ${ratio(last).toFixed(2)} | ${last.name} |`
      })
    )
  ].join("\n")

for (const [suffix, few, args] of [
  ["", false, []],
  [", no P-256 precompile", true, ["--hardfork", "prague"]]
] as const) {
  const stack = await startStack({ anvil: args })
  try {
    for (const version of versions) await measure(stack, version, suffix, few)
  } finally {
    await stack.stop()
  }
}
if (process.argv.includes("--all"))
  for (const one of samples)
    console.log(
      `${one.version} ${one.field.padEnd(16)} ${ratio(one).toFixed(2)} ${one.used} of ${one.limit} ${one.name}`
    )
console.log(table())
