import * as Result from "effect/Result"
import { concat, hexlify, randomBytes } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as WalletCalls from "../../../src/domain/wallet/WalletCalls.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import { type Estimate, type EstimatedOp, first } from "../../support/http/DevService.js"
import { perFile } from "../../support/http/SharedService.js"
import { assertion, indexIn } from "../../support/suite/Keys.js"
import { mixedProof } from "../../support/suite/Layouts.js"

/** Unaccounted bytes, in every field through which they could enter a bundle. */

const service = perFile()
let wallets: { readonly ecdsa: string; readonly either: string }
let submitters: ReadonlyArray<string>
let counts: ReadonlyArray<number>
const phone = Authenticator.make()

const countsOf = () => Promise.all(submitters.map((eoa) => service.provider.getTransactionCount(eoa)))

beforeAll(async () => {
  const [ecdsa = ""] = await service.create("ecdsa")
  const account = { salt: "either", walletCustody: 2, passkeyPubKey: [phone.spki.toString("base64")] }
  const { factory, beaconAdminAddress, beaconAdminCreationCode } = service.info.settings
  const predicted = await service.ok<ReadonlyArray<{ wallet: string }>>("/predict", {
    accounts: [{ salt: "either", walletCustody: 2 }],
    settings: { factory, beaconAdminAddress, beaconAdminCreationCode }
  })
  const { wallet: either } = first(predicted)
  await service.fund(either)
  await service.ok("/create", { accounts: [account], settings: service.info.settings })
  wallets = { ecdsa, either }
  const { address } = await service.ok<{ address: string }>("/getbundleraddress", {})
  submitters = [service.signer.address, address]
  counts = await countsOf()
})
afterAll(async () => {
  expect(await countsOf()).toEqual(counts)
})

const settingsBy = {
  "the caller's own signer": () => service.info.settings,
  "the service's EOA": () => {
    const { signer: _, ...settings } = service.info.settings
    return settings
  }
}
type By = keyof typeof settingsBy

const version = "v0.7"
const entryPoint = () => Address.unsafe(service.info.entryPoints[version])

const estimated = async (by: By, wallet: string, more: object = {}): Promise<EstimatedOp> => {
  const { error, userOps } = await service.ok<Estimate>("/estimateGas", {
    operations: [
      {
        wallet,
        walletCustody: 0,
        to: service.info.token,
        funcSignature: "mint(address,uint256)",
        funcParams: [wallet, "1"]
      }
    ],
    settings: { ...settingsBy[by](), ...more }
  })
  expect(error).toBeNull()
  return first(userOps)
}

const post = (status: number, by: By, operation: object, more: object = {}) =>
  service.refused(status, "/executeEncoded", {
    operations: [{ walletCustody: 0, ...operation }],
    settings: { ...settingsBy[by](), ...more }
  })

/** The op with other fields, its hash, and its owner's signature over it. */
const changed = ({ encodedUserOp }: EstimatedOp, fields: (op: UserOperation.UserOperation) => object) => {
  const op = Result.getOrThrow(UserOperation.decode(version, Hex.unsafe(encodedUserOp)))
  const other = { ...op, ...fields(op) }
  const userOpHash = UserOperation.hash(version, entryPoint(), BigInt(service.info.chainId), other)
  return {
    encodedUserOp: UserOperation.encode(version, other),
    userOpHash,
    signature: service.signer.signingKey.sign(userOpHash).serialized
  }
}

const junk = hexlify(randomBytes(1_000))
const word = "00".repeat(32)

describe.each(["the caller's own signer", "the service's EOA"] as const)("%s submits no op with", (by) => {
  it.each<[string, (signature: string) => string]>([
    ["a byte", (signature) => `${signature}00`],
    ["words of zeros", (signature) => `${signature}${"00".repeat(63)}`],
    ["100,000 bytes", (signature) => `${signature}${"ab".repeat(100_000)}`],
    ["the same signature once more", (signature) => concat([signature, signature])],
    ["65 bytes of no signer", (signature) => concat([signature, hexlify(randomBytes(64)), "0x1b"])],
    ["a word behind the ABI form", (signature) => `${mixedProof(signature, [])}${word}`],
    ["1,000 bytes behind the ABI form", (signature) => concat([mixedProof(signature, []), junk])],
    [
      "padding that is not zero",
      (signature) => mixedProof(signature, []).replace(/00(?=[0-9a-f]{64}$)/, "01")
    ],
    [
      "a gap between the parts of the ABI form",
      (signature) => {
        // The offset of the passkeys points one word further, past a word of junk.
        const proof = mixedProof(signature, [])
        const [head, offset, rest] = [proof.slice(0, 66), proof.slice(66, 130), proof.slice(130)]
        const further = (BigInt(`0x${offset}`) + 32n).toString(16).padStart(64, "0")
        return `${head}${further}${rest.slice(0, -64)}${"ab".repeat(32)}${rest.slice(-64)}`
      }
    ]
  ])("%s after the owner's signature", async (_, tailed) => {
    const op = await estimated(by, wallets.ecdsa)
    const signature = tailed(service.signer.signingKey.sign(op.userOpHash).serialized)
    const { encodedUserOp, userOpHash } = op
    const { code, details } = await post(422, by, { encodedUserOp, userOpHash, signature })
    expect(code).toBe("invalid_signature")
    expect(details[0]?.path).toBe("operations[0]")
    expect(details[0]?.message).toMatch(/^invalid signature: .*(proof|signature|ecdsa)/)
  })

  it.each<[string, (proof: string) => string]>([
    ["a word", (proof) => `${proof}${word}`],
    ["1,000 bytes", (proof) => concat([proof, junk])],
    ["a byte in the padding of clientDataJSON", (proof) => `${proof.slice(0, -2)}01`]
  ])("%s after a passkey's proof", async (_, tailed) => {
    const { encodedUserOp, userOpHash } = await estimated(by, wallets.either)
    const config = { custody: 2, threshold: 1, owners: [], passkeys: [phone.passkey.publicKey] }
    const part = assertion(userOpHash, phone.passkey, { index: indexIn(config, phone.passkey) })
    const signature = tailed(mixedProof("0x", [part]))
    const { code, details } = await post(422, by, { encodedUserOp, userOpHash, signature })
    expect(code).toBe("invalid_signature")
    expect(details[0]?.message).toMatch(
      /expected abi\.encode\(bytes ecdsa, PasskeyProof\[\] passkeys\)|but the proof has [0-9]+ bytes/
    )
  })

  it("bytes after the object in clientDataJSON", async () => {
    const { encodedUserOp, userOpHash } = await estimated(by, wallets.either)
    const config = { custody: 2, threshold: 1, owners: [], passkeys: [phone.passkey.publicKey] }
    const { auth, index } = assertion(userOpHash, phone.passkey, { index: indexIn(config, phone.passkey) })
    for (const tail of ["junk", " ".repeat(1_024)]) {
      const clientDataJSON = `${auth.clientDataJSON}${tail}`
      const signature = mixedProof("0x", [{ index, auth: { ...auth, clientDataJSON } }])
      const { code, details } = await post(422, by, { encodedUserOp, userOpHash, signature })
      expect(code).toBe("invalid_signature")
      expect(details[0]?.message).toContain("clientDataJSON: ")
    }
  })

  it.each<[string, (encoded: string) => string]>([
    ["a byte", (encoded) => `${encoded}00`],
    ["a word", (encoded) => `${encoded}${word}`],
    ["1,000 bytes", (encoded) => concat([encoded, junk])],
    ["a longer offset", (encoded) => `0x${"40".padStart(64, "0")}${word}${encoded.slice(66)}`]
  ])("%s in encodedUserOp next to the op", async (_, tailed) => {
    const { encodedUserOp, userOpHash } = await estimated(by, wallets.ecdsa)
    const signature = service.signer.signingKey.sign(userOpHash).serialized
    const { details } = await post(400, by, { encodedUserOp: tailed(encodedUserOp), userOpHash, signature })
    expect(details).toMatchObject([{ path: "operations[0].encodedUserOp" }])
  })

  it.each<[string, string, (op: UserOperation.UserOperation) => object]>([
    ["a word behind its call", "callData: ", ({ callData }) => ({ callData: `${callData}${word}` })],
    ["a byte behind its call", "callData: ", ({ callData }) => ({ callData: `${callData}00` })],
    ["1,000 bytes behind its call", "callData: ", ({ callData }) => ({ callData: concat([callData, junk]) })],
    ["an initCode", "initCode ", ({ sender }) => ({ initCode: concat([sender, junk]) })],
    ["its own signature", "signature ", () => ({ signature: junk })],
    [
      "4,097 bytes for its paymaster",
      "paymasterAndData: ",
      () => ({
        paymasterAndData: PaymasterData.make(version, {
          paymaster: Address.unsafe(`0x${"5a".repeat(20)}`),
          limits: PaymasterData.noLimits,
          data: Hex.unsafe(`0x${"ab".repeat(PaymasterData.maxData + 1)}`)
        })
      })
    ]
  ])("%s, though signed by its owner", async (_, names, fields) => {
    const { signature, ...op } = changed(await estimated(by, wallets.ecdsa), fields)
    const { details } = await post(400, by, { ...op, signature })
    expect(details).toMatchObject([
      { path: "operations[0].encodedUserOp", message: expect.stringContaining(names) }
    ])
  })

  it("bytes after a sponsorship's window", async () => {
    const paymaster = { paymaster: service.info.paymaster }
    const op = await estimated(by, wallets.ecdsa, paymaster)
    for (const tail of ["00", "01", "ab".repeat(1_000)]) {
      const tailed = changed(op, ({ paymasterAndData, preVerificationGas }) => ({
        paymasterAndData: `${paymasterAndData}${tail}`,
        preVerificationGas: preVerificationGas + 50_000n
      }))
      const { code, details } = await post(422, by, tailed, paymaster)
      expect(code).toBe("not_sponsored")
      if (tail !== "01") expect(details[0]?.message).toContain("paymasterAndData: ")
    }
  })
})

it("the service's EOA submits no op whose preVerificationGas does not pay for its bytes", async () => {
  const by = "the service's EOA"
  const op = changed(await estimated(by, wallets.ecdsa), ({ callData, preVerificationGas }) => ({
    // 1,000 bytes more in the argument of the call itself, and not a unit of gas more for them.
    callData: longer(Hex.unsafe(callData), junk),
    preVerificationGas
  }))
  const { code, details } = await post(422, by, op)
  expect(code).toBe("submission_unpaid")
  expect(details[0]?.message).toContain("preVerificationGas")
})

/** `execute` of the same call with more data. */
const longer = (callData: Hex.Hex, more: string): Hex.Hex => {
  const [call] = WalletCalls.read(callData)
  if (call === undefined) throw new Error("a call was expected")
  return WalletCalls.execute(call.target, call.value, Hex.unsafe(concat([call.data, more])))
}
