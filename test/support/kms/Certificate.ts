import { generateKeyPairSync, sign } from "node:crypto"

const element = (tag: number, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const body = Buffer.concat(parts)
  const size =
    body.length < 0x80 ? Buffer.of(body.length) : Buffer.of(0x82, body.length >> 8, body.length & 0xff)
  return Buffer.concat([Buffer.of(tag), size, body])
}
const sequence = (...parts: ReadonlyArray<Buffer>) => element(0x30, ...parts)
const objectId = (digits: string) => element(0x06, Buffer.from(digits, "hex"))
const text = (tag: number, value: string) => element(tag, Buffer.from(value))
const time = (date: Date) => text(0x17, `${date.toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`)

/** A temporary self-signed certificate of these host names: its own CA, valid for a day. */
export const selfSigned = (hosts: ReadonlyArray<string>): { readonly key: string; readonly cert: string } => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" })
  const ecdsaWithSha256 = sequence(objectId("2a8648ce3d040302"))
  const name = sequence(element(0x31, sequence(objectId("550403"), text(0x0c, "castellan test"))))
  const names = sequence(...hosts.map((host) => text(0x82, host)))
  const day = 86_400_000
  const certificate = sequence(
    element(0xa0, element(0x02, Buffer.of(2))),
    element(0x02, Buffer.of(1)),
    ecdsaWithSha256,
    name,
    sequence(time(new Date(Date.now() - day)), time(new Date(Date.now() + day))),
    name,
    publicKey.export({ format: "der", type: "spki" }),
    element(0xa3, sequence(sequence(objectId("551d11"), element(0x04, names))))
  )
  const signature = sign("sha256", certificate, privateKey)
  const der = sequence(certificate, ecdsaWithSha256, element(0x03, Buffer.of(0), signature))
  const base64 = der.toString("base64").match(/.{1,64}/g) ?? []
  return {
    key: privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${base64.join("\n")}\n-----END CERTIFICATE-----\n`
  }
}
