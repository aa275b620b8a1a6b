/**
 * `castellan/passkeys`: passkeys of wallets in a browser page, by WebAuthn only; loads no other module. Send the results
 * to your backend, which has the API key.
 */

/** Public parts of a passkey, in base64. Your backend stores them: neither can be read again. */
export interface Passkey {
  /** Of the credential: `sign` asks for it. */
  readonly id: string
  /** For `passkeyPubKey` of /create: SPKI of a key on P-256. */
  readonly publicKey: string
}

/** For `validationData` of /executePasskey. In base64. */
export interface Assertion {
  readonly signature: string
  readonly authenticatorData: string
  readonly clientDataJSON: string
}

/** Options of a new passkey. */
export interface Registration {
  /** Page name that the authenticator shows. */
  readonly name: string
  /** Domain of the passkey: the page's own (default) or one above it. Permanent. */
  readonly domain?: string
  readonly user: {
    readonly name: string
    readonly displayName?: string
    /** 1 to 64 bytes without personal data. Default: random. A repeated id replaces its earlier passkey. */
    readonly id?: Uint8Array
  }
  readonly signal?: AbortSignal
}

/** Options of a signature. */
export interface Signing {
  /** Of /passkeyHash: 32 bytes in hex. */
  readonly signingHash: string
  /** Ids of the wallet's passkeys; the authenticator chooses among its own. */
  readonly ids: ReadonlyArray<string>
  readonly domain?: string
  readonly signal?: AbortSignal
}

interface Credential {
  readonly rawId: ArrayBuffer
  readonly response: {
    readonly getPublicKey: () => ArrayBuffer | null
    readonly signature: ArrayBuffer
    readonly authenticatorData: ArrayBuffer
    readonly clientDataJSON: ArrayBuffer
  }
}

declare const navigator: {
  readonly credentials: {
    readonly create: (options: object) => Promise<Credential | null>
    readonly get: (options: object) => Promise<Credential | null>
  }
}

const toBase64 = (buffer: ArrayBuffer): string => btoa(String.fromCharCode(...new Uint8Array(buffer)))

const fromBase64 = (text: string): Uint8Array =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
    character.charCodeAt(0)
  )

const fromHex = (text: string): Uint8Array => {
  if (!/^0x[0-9a-fA-F]{64}$/.test(text)) throw new TypeError("signingHash: expected 32 bytes in hex")
  return Uint8Array.from(text.slice(2).match(/../g) ?? [], (digits) => Number.parseInt(digits, 16))
}

const random = (bytes: number): Uint8Array => crypto.getRandomValues(new Uint8Array(bytes))

/** Makes a passkey whose user is verified at each signature: wallets take no others. Rejects when the user declines. */
export const register = async ({ domain, name, signal, user }: Registration): Promise<Passkey> => {
  const credential = await navigator.credentials.create({
    publicKey: {
      rp: { name, ...(domain !== undefined && { id: domain }) },
      user: { displayName: user.name, ...user, id: user.id ?? random(16) },
      // Never checked: no attestation is requested.
      challenge: random(32),
      // ES256, the only algorithm of the wallets.
      pubKeyCredParams: [{ type: "public-key", alg: -7 }],
      authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
      attestation: "none"
    },
    ...(signal !== undefined && { signal })
  })
  const publicKey = credential?.response.getPublicKey() ?? null
  if (credential === null || publicKey === null) throw new Error("the browser gave no passkey on P-256")
  return { id: toBase64(credential.rawId), publicKey: toBase64(publicKey) }
}

/** Lets one of the passkeys sign an op: its signing hash is the challenge. Rejects when the user declines. */
export const sign = async ({ domain, ids, signal, signingHash }: Signing): Promise<Assertion> => {
  const credential = await navigator.credentials.get({
    publicKey: {
      challenge: fromHex(signingHash),
      allowCredentials: ids.map((id) => ({ type: "public-key", id: fromBase64(id) })),
      userVerification: "required",
      ...(domain !== undefined && { rpId: domain })
    },
    ...(signal !== undefined && { signal })
  })
  if (credential === null) throw new Error("the browser gave no signature")
  const { authenticatorData, clientDataJSON, signature } = credential.response
  return {
    signature: toBase64(signature),
    authenticatorData: toBase64(authenticatorData),
    clientDataJSON: toBase64(clientDataJSON)
  }
}
