import { describe, expect, it } from "@effect/vitest"
import { TypedDataEncoder, verifyMessage, verifyTypedData } from "ethers"
import { documented } from "../../support/http/Examples.js"
import { perFile } from "../../support/http/SharedService.js"

type Signed = ReadonlyArray<{
  readonly address: string
  readonly publicKey: string
  readonly signatures: ReadonlyArray<
    { readonly r: string; readonly s: string; readonly v: number } | string | null
  >
  readonly errors: ReadonlyArray<string | null> | null
}>

const service = perFile()

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

  it("signs a text and the bytes of it the same way", async () => {
    const [element] = await service.ok<Signed>("/sign", {
      messages: ["hello", "0x68656c6c6f"],
      signer: service.info.settings.signer
    })
    const [text, bytes] = element?.signatures ?? []
    expect(verifyMessage("hello", text as { r: string; s: string; v: number })).toBe(service.signer.address)
    expect(bytes).toEqual(text)
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

  it("says in the request what is wrong with it, and in the answer what is wrong with a message", async () => {
    const { signer } = service.info.settings
    const base = { messages: ["x"], signer }
    for (const [body, path] of [
      [{ signer }, "messages"],
      [{ ...base, messages: "x" }, "messages"],
      [{ ...base, messages: [7] }, "messages[0]"],
      [{ ...base, messages: [null] }, "messages[0]"],
      [{ messages: ["x"] }, "signer"],
      [{ ...base, signer: { clientId: signer.clientId } }, "signer"],
      [{ ...base, format: "RSV" }, "format"],
      [{ ...base, format: null }, "format"],
      [{ ...base, hashed: "true" }, "hashed"],
      [{ ...base, hashed: true, eip712 }, "hashed"],
      [{ ...base, eip712: { ...eip712, chainId: 137 } }, "eip712.chainId"],
      [{ ...base, eip712: { ...eip712, chainId: "-1" } }, "eip712.chainId"],
      [{ ...base, eip712: { ...eip712, chainId: `0x1${"0".repeat(64)}` } }, "eip712.chainId"],
      [{ ...base, eip712: { ...eip712, address: "0x44" } }, "eip712.address"],
      [{ ...base, eip712: { ...eip712, verifyingContract: eip712.address } }, "eip712.verifyingContract"],
      [{ ...base, eip712: [] }, "eip712"],
      [{ ...base, message: "x" }, "message"],
      [{ ...base, messages: Array.from({ length: 257 }, () => "x") }, "messages"]
    ] as const) {
      const { details } = await service.refused(400, "/sign", body)
      expect(details[0]?.path, JSON.stringify(body).slice(0, 200)).toBe(path)
    }
    const cyclic = JSON.stringify({
      types: { A: [{ name: "a", type: "A" }] },
      primaryType: "A",
      message: { a: { a: {} } }
    })
    const deep = `{"types":{"A":[]},"primaryType":"A","message":${"[".repeat(20_000)}${"]".repeat(20_000)}}`
    const [element] = await service.ok<Signed>("/sign", {
      ...base,
      messages: [cyclic, "\ud800", deep, '{"types":{},"message":{}}', "fine"],
      eip712
    })
    expect(element?.errors?.map((error) => error !== null)).toEqual([true, true, true, true, false])
    expect(element?.errors?.[0]).toBe("types.A: the type contains itself")
    expect(element?.signatures.map((each) => each !== null)).toEqual([false, false, false, false, true])
  })
})
