/** Values for the examples of the documentation. */

export const rpc = "http://127.0.0.1:8545"
/** The canonical EntryPoint v0.7. */
export const entryPoint = "0x0000000071727De22E5E9d8BAf0edAc6f37da032"
export const factory = "0x1111111111111111111111111111111111111111"
export const beacon = "0x2222222222222222222222222222222222222222"
export const creationCode = "0x60806040"
export const token = "0x3333333333333333333333333333333333333333"
export const recipient = "0x4444444444444444444444444444444444444444"
export const signer = { clientId: "dev", versionId: "1" }
export const hash = `0x${"ab".repeat(32)}`
export const requestId = "6f0c1d2e-7a3b-4c5d-8e9f-0a1b2c3d4e5f"
export const keyId = "21ca2b88d8bd"
export const watchId = "0f5c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77"
export const encodedUserOp = "0x0000000000000000000000000000000000000000000000000000000000000020"
/** An authenticator's signature of `hash`, in base64url. */
export const assertion = {
  signature: "EREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREREQ",
  authenticatorData: "IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIFAAAAAQ",
  clientDataJSON:
    "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoicTZ1cnE2dXJxNnVycTZ1cnE2dXJxNnVycTZ1cnE2dXJxNnVycTZ1cnE2cyIsIm9yaWdpbiI6Imh0dHBzOi8vZXhhbXBsZS5jb20iLCJjcm9zc09yaWdpbiI6ZmFsc2V9"
}
