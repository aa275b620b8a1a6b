import { describe, expect, it } from "@effect/vitest"
import { TypedDataEncoder, verifyTypedData } from "ethers"
import { documented } from "../../support/http/Examples.js"
import { aloneInFile } from "../../support/http/SharedService.js"

type Signed = ReadonlyArray<{
  readonly address: string
  readonly publicKey: string
  readonly signatures: ReadonlyArray<
    { readonly r: string; readonly s: string; readonly v: number } | string | null
  >
  readonly errors: ReadonlyArray<string | null> | null
}>

const service = aloneInFile()

const domain = { name: "Shop", version: "2" }
const types = {
  Order: [
    { name: "items", type: "string[]" },
    { name: "total", type: "uint256" }
  ]
}
const order = { items: ["lamp", "oil"], total: "12000000000000000000" }
const document = JSON.stringify({ types, primaryType: "Order", domain, message: order })
const eip712 = { address: "0x4444444444444444444444444444444444444444", chainId: "137" }

describe("/sign", () => {
  it("answers as the reference shows: typed data, and another text", async () => {
    const [element] = await documented<Signed>(service, "/sign", {
      messages: [document, "hello"],
      format: "rsv",
      hashed: false,
      signer: service.info.settings.signer,
      eip712
    })
    expect(element?.address).toBe(service.signer.address)
    expect(element?.publicKey).toBe(service.signer.signingKey.publicKey.slice(2))
    expect(element?.errors).toBeNull()
    const full = { ...domain, chainId: 137n, verifyingContract: eip712.address }
    const [signature] = element?.signatures ?? []
    expect(verifyTypedData(full, types, order, signature as { r: string; s: string; v: number })).toBe(
      service.signer.address
    )
  })

  it("signs typed data of any chain in the domain that the request completes", async () => {
    const [element] = await service.ok<Signed>("/sign", {
      messages: [document, "hello"],
      format: "compact",
      signer: service.info.settings.signer,
      eip712
    })
    const full = { ...domain, chainId: 137n, verifyingContract: eip712.address }
    expect(verifyTypedData(full, types, order, String(element?.signatures[0]))).toBe(service.signer.address)
    const own = { name: "castellan", version: "1", chainId: 137n, verifyingContract: eip712.address }
    const message = { Message: [{ name: "contents", type: "string" }] }
    expect(verifyTypedData(own, message, { contents: "hello" }, String(element?.signatures[1]))).toBe(
      service.signer.address
    )
    expect(service.log()).toContain(TypedDataEncoder.hash(full, types, order))
  })
})
