import {
  type BaseWallet,
  type Contract,
  concat,
  type HDNodeWallet,
  Interface,
  type TransactionReceipt,
  zeroPadValue
} from "ethers"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { type EntryPointVersion, entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { at, type Chain } from "./Chain.js"
import { ecdsa } from "./Keys.js"
import {
  authorizationOf,
  type Conditions,
  type Config,
  configHash,
  deployDigest,
  opSignature,
  saltHash,
  signingHash,
  unbound
} from "./Layouts.js"
import { mined } from "./Receipt.js"

/** An unpacked user operation; `pack` converts it for an EntryPoint version. */
export interface Op {
  readonly sender: string
  readonly nonce: bigint
  readonly initCode: string
  readonly callData: string
  readonly callGasLimit: bigint
  readonly verificationGasLimit: bigint
  readonly preVerificationGas: bigint
  readonly maxFeePerGas: bigint
  readonly maxPriorityFeePerGas: bigint
  readonly paymasterAndData: string
  readonly signature: string
}

export const walletAbi = new Interface(artifact("Wallet").abi)
export const factoryAbi = new Interface(artifact("WalletFactory").abi)

const half = (value: bigint) => zeroPadValue(`0x${value.toString(16).padStart(32, "0")}`, 16)

export const pack = (version: EntryPointVersion, op: Op) =>
  version === "v0.6"
    ? op
    : {
        ...op,
        accountGasLimits: concat([half(op.verificationGasLimit), half(op.callGasLimit)]),
        gasFees: concat([half(op.maxPriorityFeePerGas), half(op.maxFeePerGas)])
      }

/** An unsigned operation with generous limits; tests of limits set their own. */
export const newOp = (sender: string, fields: Partial<Op> = {}): Op => ({
  sender,
  nonce: 0n,
  initCode: "0x",
  callData: "0x",
  callGasLimit: 300_000n,
  verificationGasLimit: 1_500_000n,
  preVerificationGas: 60_000n,
  maxFeePerGas: 3_000_000_000n,
  maxPriorityFeePerGas: 1_000_000_000n,
  paymasterAndData: "0x",
  signature: "0x",
  ...fields
})

/** The hash as the real EntryPoint computes it. */
export const hashOf = (chain: Chain, version: EntryPointVersion, op: Op): Promise<string> =>
  chain.entryPoint(version).getFunction("getUserOpHash").staticCall(pack(version, op))

/** Signs an operation: `prove` makes the proof over the signing hash. */
export const signOp = async (
  chain: Chain,
  version: EntryPointVersion,
  op: Op,
  prove: (hash: string) => string,
  conditions: Conditions = unbound
): Promise<Op> => {
  const hash = signingHash(await hashOf(chain, version, op), conditions)
  return { ...op, signature: opSignature(conditions, prove(hash)) }
}

/** The deployer's authorisation of this wallet, by default for the chain's bundler and ten minutes of chain time. */
export const authorize = async (
  chain: Chain,
  salt: string,
  config: Config,
  options: {
    readonly deadline?: number
    readonly legacy?: boolean
    readonly by?: BaseWallet
    readonly chainId?: bigint
    readonly factory?: string
    readonly bundler?: string
  } = {}
) => {
  const bundler = options.bundler ?? chain.bundler.address
  const deadline = options.deadline ?? (await chain.now()) + 600
  const legacy = options.legacy ?? false
  const digest = deployDigest(options.chainId ?? chain.chainId, options.factory ?? chain.suite.factory, {
    saltHash: saltHash(salt),
    custody: config.custody,
    legacy,
    configHash: configHash(config),
    deadline,
    bundler
  })
  const signature = ecdsa(digest, options.by ?? chain.deployer)
  return { deadline, legacy, authorization: authorizationOf(signature, bundler) }
}

/** factory ++ createWallet calldata. */
export const initCodeOf = (
  factory: string,
  salt: string,
  config: Config,
  grant: { readonly deadline: number; readonly legacy: boolean; readonly authorization: string }
): string =>
  concat([
    factory,
    factoryAbi.encodeFunctionData("createWallet", [
      saltHash(salt),
      config.custody,
      grant.legacy,
      config,
      grant.deadline,
      grant.authorization
    ])
  ])

export const predict = (chain: Chain, salt: string, custody: number, legacy = false): Promise<string> =>
  chain.factory.getFunction("getAddress").staticCall(saltHash(salt), custody, legacy)

/** A creation operation signed by the deployer; its wallet is unfunded. */
export const creationOp = async (
  chain: Chain,
  version: EntryPointVersion,
  salt: string,
  config: Config,
  conditions: Conditions = unbound,
  fields: Partial<Op> = {}
): Promise<Op> => {
  const sender = await predict(chain, salt, config.custody)
  const initCode = initCodeOf(chain.suite.factory, salt, config, await authorize(chain, salt, config))
  const op = newOp(sender, { initCode, ...fields })
  return signOp(chain, version, op, (hash) => ecdsa(hash, chain.deployer), conditions)
}

/** The EntryPoint's reason to refuse the bundle, e.g. "AA24 signature error"; undefined if it accepts. */
export const refusal = async (
  chain: Chain,
  version: EntryPointVersion,
  ops: ReadonlyArray<Op>,
  from: HDNodeWallet = chain.bundler
): Promise<string | undefined> => {
  const entryPoint = chain.entryPoint(version).connect(from)
  try {
    await entryPoint.getFunction("handleOps").staticCall(
      ops.map((op) => pack(version, op)),
      from.address,
      { gasLimit: 20_000_000n }
    )
    return undefined
  } catch (cause) {
    return reasonOf(entryPoint.interface, cause)
  }
}

const reasonOf = (abi: Interface, cause: unknown): string => {
  if (typeof cause !== "object" || cause === null || !("data" in cause) || typeof cause.data !== "string")
    throw cause
  const failed = abi.parseError(cause.data)
  return failed === null ? cause.data : String(failed.args[1])
}

export interface Landed {
  readonly receipt: TransactionReceipt
  readonly outcomes: ReadonlyArray<{
    readonly sender: string
    readonly success: boolean
    readonly reason: string
  }>
}

/** Submits the bundle and returns the EntryPoint's events of each op; rejects if the EntryPoint refuses the bundle. */
export const handleOps = async (
  chain: Chain,
  version: EntryPointVersion,
  ops: ReadonlyArray<Op>,
  from: HDNodeWallet = chain.bundler
): Promise<Landed> => {
  const why = await refusal(chain, version, ops, from)
  if (why !== undefined) throw new Error(why)
  const entryPoint = chain.entryPoint(version).connect(from)
  const sent = await entryPoint.getFunction("handleOps").send(
    ops.map((op) => pack(version, op)),
    from.address,
    { gasLimit: 20_000_000n }
  )
  const receipt = await mined(sent)
  const events = receipt.logs.flatMap((log) => {
    const parsed = log.address === entryPoints[version] ? entryPoint.interface.parseLog(log) : null
    return parsed === null ? [] : [parsed]
  })
  const reasons = new Map(
    events.flatMap((event) =>
      event.name === "UserOperationRevertReason"
        ? [[String(event.args.getValue("userOpHash")), String(event.args.getValue("revertReason"))]]
        : []
    )
  )
  const outcomes = events.flatMap((event) =>
    event.name === "UserOperationEvent"
      ? [
          {
            sender: String(event.args.getValue("sender")),
            success: Boolean(event.args.getValue("success")),
            reason: reasons.get(String(event.args.getValue("userOpHash"))) ?? "0x"
          }
        ]
      : []
  )
  return { receipt, outcomes }
}

/** Funds and creates a wallet through an EntryPoint, and returns it. */
export const createWallet = async (
  chain: Chain,
  version: EntryPointVersion,
  salt: string,
  config: Config
): Promise<Contract> => {
  const op = await creationOp(chain, version, salt, config)
  await chain.fund(op.sender)
  await handleOps(chain, version, [op])
  return at("Wallet", op.sender, chain)
}

/** Number of earlier configurations of the wallet: the top 64 bits of its nonces. */
export const epochOf = async (chain: Chain, wallet: string): Promise<bigint> =>
  (await chain.provider.getCode(wallet)) === "0x"
    ? 0n
    : (await configurationOf(at("Wallet", wallet, chain))).configNonce - 1n

/** The wallet's next nonce of this key (128 bits), by default under the current configuration. */
export const nonceOf = async (
  chain: Chain,
  version: EntryPointVersion,
  wallet: string,
  key = 0n,
  epoch?: bigint
): Promise<bigint> => {
  const high = epoch ?? (await epochOf(chain, wallet))
  return chain
    .entryPoint(version)
    .getFunction("getNonce")
    .staticCall(wallet, (high << 128n) | key)
}

/** Calldata of the wallet's `execute`. */
export const execute = (target: string, data = "0x", value = 0n): string =>
  walletAbi.encodeFunctionData("execute", [target, value, data])

/** Calldata of the wallet's `executeBatch`. */
export const batch = (
  ...calls: ReadonlyArray<{ readonly target: string; readonly value?: bigint; readonly data?: string }>
): string =>
  walletAbi.encodeFunctionData("executeBatch", [
    calls.map((call) => ({ target: call.target, value: call.value ?? 0n, data: call.data ?? "0x" }))
  ])

/** The wallet's `configuration()`. */
export const configurationOf = async (
  wallet: Contract
): Promise<{ readonly config: Config; readonly configNonce: bigint }> => {
  const [stored, configNonce] = await wallet.getFunction("configuration").staticCall()
  const config = {
    custody: Number(stored.custody),
    threshold: Number(stored.threshold),
    owners: stored.owners.toArray(),
    passkeys: stored.passkeys.map((key: { readonly x: string; readonly y: string }) => ({
      x: key.x,
      y: key.y
    }))
  }
  return { config, configNonce }
}
