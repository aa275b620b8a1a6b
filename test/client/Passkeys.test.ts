import * as Passkeys from "castellan/passkeys"
import { afterEach, describe, expect, it, vi } from "vitest"

/** The playground's scenario has a real browser; this file checks the calls to it. */

const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values).buffer
const credential = (publicKey: ArrayBuffer | null) => ({
  rawId: bytes(251, 255),
  response: {
    getPublicKey: () => publicKey,
    signature: bytes(1),
    authenticatorData: bytes(2),
    clientDataJSON: bytes(3)
  }
})

const browser = (answer: unknown) => {
  const asked: Array<{ readonly publicKey: Readonly<Record<string, unknown>> }> = []
  const ask = async (options: (typeof asked)[number]) => {
    asked.push(options)
    return answer
  }
  vi.stubGlobal("navigator", { credentials: { create: ask, get: ask } })
  return asked
}
afterEach(() => void vi.unstubAllGlobals())

const signingHash = `0x${"0a".repeat(32)}`

describe("register", () => {
  it("register requests a P-256 key of a verified user, at the given domain", async () => {
    const asked = browser(credential(bytes(7)))
    const made = await Passkeys.register({ name: "App", domain: "app.test", user: { name: "bob" } })
    expect(made).toEqual({ id: "+/8=", publicKey: "Bw==" })
    expect(asked[0]?.publicKey).toMatchObject({
      rp: { name: "App", id: "app.test" },
      user: { name: "bob", displayName: "bob" },
      pubKeyCredParams: [{ alg: -7 }],
      authenticatorSelection: { userVerification: "required" }
    })
    await Passkeys.register({ name: "App", user: { name: "bob" } })
    const [first, second] = asked.map(
      ({ publicKey }) => publicKey as { user: { id: Uint8Array }; rp: object }
    )
    expect(first?.user.id).not.toEqual(second?.user.id)
    expect(second?.rp).toEqual({ name: "App" })
  })

  it("register rejects without a passkey, or with a passkey of another kind", async () => {
    for (const answer of [null, credential(null)]) {
      browser(answer)
      await expect(Passkeys.register({ name: "App", user: { name: "bob" } })).rejects.toThrow("no passkey")
    }
  })
})

describe("sign", () => {
  it("sign signs with a passkey of the wallet, ids in base64 or base64url", async () => {
    const asked = browser(credential(null))
    const signed = await Passkeys.sign({ signingHash, ids: ["+/8=", "-_8"], domain: "app.test" })
    expect(signed).toEqual({ signature: "AQ==", authenticatorData: "Ag==", clientDataJSON: "Aw==" })
    const id = Uint8Array.of(251, 255)
    expect(asked[0]?.publicKey).toEqual({
      challenge: new Uint8Array(32).fill(10),
      allowCredentials: [
        { type: "public-key", id },
        { type: "public-key", id }
      ],
      userVerification: "required",
      rpId: "app.test"
    })
  })

  it("sign takes only 32 bytes, and rejects without a signature", async () => {
    const asked = browser(null)
    await expect(Passkeys.sign({ signingHash: "0x00", ids: [] })).rejects.toThrow("expected 32 bytes")
    expect(asked).toEqual([])
    await expect(Passkeys.sign({ signingHash, ids: [] })).rejects.toThrow("no signature")
  })
})
