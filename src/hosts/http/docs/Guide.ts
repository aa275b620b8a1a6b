/** Rules that no schema can tell. `code` is between backticks. */
export interface Chapter {
  readonly title: string
  readonly paragraphs: ReadonlyArray<string>
  readonly points?: ReadonlyArray<string>
  readonly code?: string
}

export const chapters: ReadonlyArray<Chapter> = [
  {
    title: "Requests",
    paragraphs: [
      "Every endpoint but health and documentation asks for the account's key in the header `X-API-Key`. Bodies are JSON in UTF-8 with `Content-Type: application/json`."
    ],
    points: [
      "At most 1 MiB of body and 256 elements per array, unless the operator says otherwise.",
      "A member that the endpoint does not know is refused, never ignored. So is a name that occurs twice in one object.",
      "The end of a window of validity is spelled `validUnitl`.",
      "Integers that can exceed 2^53 are decimal strings, in requests and in answers.",
      "A JSON number that would lose digits in a double (9007199254740993, 0.1000000000000000000001, 1e400, -0) is refused at its place, wherever it stands: write it as a string.",
      "Requests are counted per account in fixed UTC minutes and hours: free 60 and 1,000, pro 300 and 10,000, enterprise 1,000 and 50,000. Every answer to a key carries `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` of the window that binds first."
    ]
  },
  {
    title: "Answers",
    paragraphs: [
      "200 means that the request was answered; for a write, that something was mined (or that nothing was left to do), and `status` says how much of it succeeded. 422 means that nothing was sent, with one exception: the code `outcome_unknown`, where the transaction in `txHash` is still under way: ask `GET /requests/{requestId}` for what became of it.",
      "Every answer that is not 200 has one shape. `code` is stable and made for programs; `details` says where and why; `requestId` is also in the header `X-Request-Id`, and names the request in the operator's log. (With `outcome_unknown`, the `requestId` of a repeat is that of the request that was accepted.)"
    ],
    code: `{
  "error": "invalid request",
  "code": "invalid_request",
  "requestId": "6f0c1d2e-...",
  "details": [{ "path": "settings.rpc", "message": "settings.rpc is required" }]
}`
  },
  {
    title: "Writing once",
    paragraphs: [
      "`/create`, `/execute`, `/executeEncoded`, `/executePasskey`, `/transactSigner` and `/unstuck` take a header `Idempotency-Key`, which you choose anew for each thing that shall happen once. A request that is repeated with the same key and the same body is the same request: it is never sent to the chain a second time, also when the first answer was lost, when both come at once, or when the service has been restarted in between. A repeat is answered with what has become of the request by then, final once it is settled.",
      "`GET /requests/{requestId}` tells the same without the body at hand: `state` is `pending` until the outcome is final; then `httpStatus` and `answer` are what the endpoint answers."
    ],
    points: [
      "With `Prefer: respond-async` a write is answered with 202, its `requestId` and a `Location` as soon as it is accepted; whoever goes away meanwhile stops nothing. What is refused before is answered as without it, and a repeat of a request that is final has the final answer.",
      "`GET /requests/{requestId}?wait=30` is answered as soon as the request is final, at the latest after so many seconds, 60 at most. A request that is final then is final for good, but for a reorganisation of the chain that takes its transaction back.",
      "`GET /requests` lists accepted requests, the newest first; `next` of a page is the `cursor` of the one after it.",
      "`DELETE /requests/{requestId}` cancels what of an accepted request was not signed yet.",
      "A key belongs to one account and one endpoint. The body is compared byte by byte, white space included; another body is 400 `idempotency_key_reused`.",
      "What was refused before anything was signed, and what had nothing to send, is not kept: the key is still free. It is taken from the moment that the request is accepted, which is after simulation and before the first signature.",
      "Keys and answers are kept for 30 days, and as long as the outcome is open."
    ]
  },
  {
    title: "Signing ops yourself",
    paragraphs: [
      "`/estimateGas` returns, for each op, `encodedUserOp`, `userOpHash`, `signingHash` and `bundler`. Sign one of the two hashes with keys that the wallet accepts and send `encodedUserOp`, `userOpHash` and your `signature` to `/executeEncoded`, with the same settings, the same signer and the same window.",
      "Whoever names `settings.signer` has its EOA submit and pay. Without one the service's own EOA submits, for wallets of the account's own profile whose ops pay for it; `/estimateGas` without a signer makes ops that do. An op that is refused as 422 `op does not pay for its submission` was changed, or has waited too long: estimate again.",
      "An op can be signed under conditions: the window `validAfter` to `validUnitl`, and the one address that may submit it. `signingHash` binds the op to the conditions of this request; its EIP-712 message is below. When all three conditions are zero, the signing hash is `userOpHash` itself.",
      "A signature over `userOpHash` is unbound: it is accepted when the request has no window, and whoever sees the op may submit it. Prefer `signingHash`."
    ],
    points: [
      "`userOpHash` is the hash of ERC-4337 for the EntryPoint's version; it binds the chain, the EntryPoint and the wallet.",
      "`signature` is the proof only, not the op's whole signature: r, s and v, 65 bytes, s in the lower half of the order, over the 32 bytes of the hash or over their EIP-191 form (`personal_sign`); for a threshold several of them one behind the other, in any order. With passkeys it is `abi.encode(bytes ecdsa, PasskeyProof[] passkeys)`.",
      "The op's signature on the chain is `abi.encode(uint48 validUntil, uint48 validAfter, address bundler, bytes proof)`.",
      "Operations that depend on each other come out linked: send their ops together, in one request.",
      "Every signature is verified before anything is spent; the error says which hash was expected."
    ],
    code: `domain  EIP712Domain(string name,string version)   name = "castellan", version = "1"
message Conditions(bytes32 userOpHash,uint48 validUntil,uint48 validAfter,address bundler)`
  },
  {
    title: "Signing with passkeys",
    paragraphs: [
      "`/passkeyHash` returns the same for wallets with passkeys. In the browser, `signingHash` is the challenge; what the authenticator answers goes to `/executePasskey`, each part in base64 or base64url, with `encodedUserOp` and `userOpHash` unchanged. The service's own EOA submits: no signer is named."
    ],
    points: [
      'User verification is demanded, by the wallet on the chain too: ask for `userVerification: "required"`.',
      "The signature may be DER, as browsers give it, and its s in either half.",
      "A wallet that needs more than one passkey takes its proofs together through `/executeEncoded`."
    ],
    code: `const { response } = await navigator.credentials.get({
  publicKey: { challenge: bytesOf(signingHash), userVerification: "required", rpId }
})
// validationData: base64 of response.signature, response.authenticatorData, response.clientDataJSON`
  }
]

/** A chapter with its heading. */
export const markdown = ({ code, paragraphs, points, title }: Chapter): string =>
  [
    `## ${title}\n`,
    ...paragraphs.map((text) => `${text}\n`),
    ...(points === undefined ? [] : [`${points.map((text) => `- ${text}`).join("\n")}\n`]),
    ...(code === undefined ? [] : [`\`\`\`\n${code}\n\`\`\`\n`])
  ].join("\n")
