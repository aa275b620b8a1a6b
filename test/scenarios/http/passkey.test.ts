import { createHash, createPrivateKey } from "node:crypto"
import { p256 } from "@noble/curves/p256"
import { hexlify } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as Authenticator from "../../support/custody/Authenticator.js"
import {
  anvilKey,
  type CreateResult,
  elementAt,
  first,
  type TransactionResult
} from "../../support/http/DevService.js"
import { documented } from "../../support/http/Examples.js"
import { aloneInFile } from "../../support/http/SharedService.js"

interface Hashed {
  readonly status: number
  readonly results: ReadonlyArray<{
    readonly userOpHash: string
    readonly signingHash: string
    readonly encodedUserOp: string
    readonly bundler: string
    readonly aggrIndexes: ReadonlyArray<number>
    readonly error: string | null
  }>
}

/** A fixed passkey, so its assertions are fixed too. */
const secret = Buffer.alloc(32, 7)
const point = Buffer.from(p256.getPublicKey(secret, false))
const coordinates = { x: point.subarray(1, 33), y: point.subarray(33) }
const phone = Authenticator.make({
  publicKey: { x: hexlify(coordinates.x), y: hexlify(coordinates.y) },
  privateKey: createPrivateKey({
    format: "jwk",
    key: {
      kty: "EC",
      crv: "P-256",
      d: secret.toString("base64url"),
      x: coordinates.x.toString("base64url"),
      y: coordinates.y.toString("base64url")
    }
  })
})
const recipient = anvilKey(9).address

/** The authenticator's assertion, its signature by RFC 6979. */
const assertionOf = (challenge: string): Authenticator.Assertion => {
  const assertion = phone.get(challenge)
  const bytes = (text: string) => Buffer.from(text, "base64url")
  const client = createHash("sha256").update(bytes(assertion.clientDataJSON)).digest()
  const signed = createHash("sha256")
    .update(Buffer.concat([bytes(assertion.authenticatorData), client]))
    .digest()
  const signature = Buffer.from(p256.sign(signed, secret).toDERRawBytes()).toString("base64url")
  return { ...assertion, signature }
}

const service = aloneInFile()
let wallet: string
let settings: { readonly rpc: string; readonly entryPoint: string }
beforeAll(async () => {
  const { info } = service
  settings = { rpc: info.rpc, entryPoint: info.settings.entryPoint }
  const { beaconAdminAddress, beaconAdminCreationCode, factory } = info.settings
  const [predicted] = await service.ok<ReadonlyArray<{ readonly wallet: string }>>("/predict", {
    accounts: [{ salt: "customer-1", walletCustody: 5 }],
    settings: { factory, beaconAdminAddress, beaconAdminCreationCode }
  })
  wallet = String(predicted?.wallet)
  await service.fund(wallet)
  const created = await service.ok<CreateResult>("/create", {
    accounts: [{ salt: "customer-1", walletCustody: 5, passkeyPubKey: [phone.spki.toString("base64")] }],
    settings: info.settings
  })
  expect(created.status).toBe(1)
  await (await service.token.getFunction("mint")(wallet, 1_000n)).wait()
})

const transfer = (amount: string) => ({
  salt: "customer-1",
  walletCustody: 5,
  to: service.info.token,
  funcSignature: "transfer(address,uint256)",
  funcParams: [recipient, amount]
})
const post = ({ results }: Hashed) => {
  const { encodedUserOp, signingHash, userOpHash } = first(results)
  return {
    operations: [{ encodedUserOp, userOpHash, validationData: assertionOf(signingHash) }],
    settings
  }
}
const hash = (amount: string) =>
  service.ok<Hashed>("/passkeyHash", { operations: [transfer(amount)], settings })

/** An empty block, at a fixed price. */
const quiet = async () => {
  await service.provider.send("anvil_setNextBlockBaseFeePerGas", ["0x3b9aca00"])
  await service.provider.send("evm_mine", [])
}

describe("a transfer with a passkey", () => {
  it("is quoted unchanged in the reference, from the challenge to the receipt", async () => {
    await quiet()
    const hashed = await documented<Hashed>(service, "/passkeyHash", {
      operations: [transfer("7")],
      settings
    })
    expect(hashed).toMatchObject({ status: 0, results: [{ bundler: anvilKey(2).address, error: null }] })
    await service.provider.send("anvil_setNextBlockBaseFeePerGas", ["0x3b9aca00"])
    const done = await documented<TransactionResult>(service, "/executePasskey", post(hashed))
    expect(done.status).toBe(1)
    expect(await service.token.getFunction("balanceOf")(recipient)).toBe(7n)
    const receipt = await service.provider.getTransactionReceipt(done.txHash)
    expect(receipt?.from).toBe(anvilKey(2).address)
  })

  it("is done once under its idempotency key, and its request can be read", async () => {
    const request = post(await hash("1"))
    const before = await service.token.getFunction("balanceOf")(recipient)
    const answer = await service.keyed<TransactionResult>("/executePasskey", request, "once")
    const again = await service.keyed<TransactionResult>("/executePasskey", request, "once")
    expect([answer.status, again.status]).toEqual([200, 200])
    expect(again.body.txHash).toBe(answer.body.txHash)
    expect((await service.token.getFunction("balanceOf")(recipient)) - before).toBe(1n)
    const state = await service.request(String(answer.headers.get("x-request-id")))
    expect(state.body).toMatchObject({ endpoint: "/executePasskey", state: "final", httpStatus: 200 })
    const other = post(await hash("2"))
    const reused = await service.keyed("/executePasskey", other, "once")
    expect([reused.status, reused.body]).toMatchObject([400, { code: "idempotency_key_reused" }])
  })

  it("changed on its way is refused in the words of the catalogue", async () => {
    const hashed = await hash("1")
    const good = post(hashed)
    const [operation] = good.operations
    const wrong = (change: object) => ({ ...good, operations: [{ ...operation, ...change }] })
    const other = first((await hash("3")).results)
    const answer = await service.refused(
      422,
      "/executePasskey",
      wrong({ encodedUserOp: other.encodedUserOp, userOpHash: other.userOpHash })
    )
    expect([answer.error, answer.code]).toEqual([
      expect.stringContaining("clientDataJSON: the challenge is not base64url of signingHash"),
      "invalid_signature"
    ])
    expect(elementAt(answer.returnData, 0)).toMatchObject({ success: false, txHash: null })
    const named = await service.refused(400, "/executePasskey", wrong({ signature: "0x" }))
    expect(named).toMatchObject({ code: "unknown_field", details: [{ path: "operations[0].signature" }] })
    const part = wrong({ validationData: { ...operation?.validationData, validUntil: 5 } })
    const field = await service.refused(400, "/executePasskey", part)
    expect(field.details[0]?.path).toBe("operations[0].validationData.validUntil")
    expect(field.details[0]?.message).toContain("validUnitl")
    const none = await service.refused(400, "/executePasskey", { operations: [], settings })
    expect(none.details).toEqual([{ path: "operations", message: "expected at least one operation" }])
  })

  it("is shown by /passkeyHash, and by the state of an asynchronous request", async () => {
    const asked = { operations: [transfer("3")], settings, preview: true }
    const hashed = await service.ok<Hashed>("/passkeyHash", asked)
    const shown = {
      previewError: null,
      preview: { basis: "simulation", net: [{ delta: "-3", isVerified: true }], fees: { payer: wallet } }
    }
    expect(hashed.results).toMatchObject([shown])
    const headers = { prefer: "respond-async" }
    const sent = await service.keyed("/executePasskey", { ...post(hashed), preview: true }, "shown", {
      headers
    })
    expect(sent.status).toBe(202)
    const { body } = await service.request(String(sent.headers.get("x-request-id")))
    expect(body).toMatchObject({ previews: [{ index: 0, ...shown }] })
  })
})
