/** A chapter of rules that schemas cannot express. `code` is between backticks. */
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
      "Every endpoint except health and documentation requires the account's key in the header `X-API-Key`: `curl http://127.0.0.1:8080/requests -H 'X-API-Key: <API_KEY>'`. Bodies are JSON in UTF-8 with `Content-Type: application/json`."
    ],
    points: [
      "A body has at most 1 MiB, an array at most 256 elements, unless the operator has configured other limits. `/execute` with `Prefer: respond-async` takes up to 10,000 operations in a body of up to 8 MiB that announces its length.",
      "Unknown members are refused, never ignored. So is a name that occurs twice in one object.",
      "The end of a window of validity is spelled `validUnitl`.",
      "Integers that can exceed 2^53 are decimal strings, in requests and in answers.",
      "A JSON number that would lose digits in a double (9007199254740993, 0.1000000000000000000001, 1e400, -0) is refused wherever it occurs: write it as a string.",
      "Requests are counted per account in fixed UTC minutes and hours: free 60 and 1,000, pro 300 and 10,000, enterprise 1,000 and 50,000, unless the operator has given the account other limits. Every answer to a key carries `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` of the window that is closest to its limit."
    ]
  },
  {
    title: "Answers",
    paragraphs: [
      "200 means that the request was answered. For a write, a transaction was mined or no work was left; `status` says how much of it succeeded. 422 means that nothing was sent, with one exception. With the code `outcome_unknown`, the transaction in `txHash` is still pending: `GET /requests/{requestId}` returns its outcome.",
      "Every answer with a status of 400 or above has one shape. `code` is stable and made for programs. `details` says where and why. `requestId` is also in the header `X-Request-Id`, and names the request in the operator's log. (With `outcome_unknown`, the `requestId` of a repeat is that of the request that was accepted.)"
    ],
    code: `{
  "error": "invalid request",
  "code": "invalid_request",
  "requestId": "6f0c1d2e-...",
  "details": [{ "path": "settings.signer", "message": "settings.signer is required" }]
}`
  },
  {
    title: "Writing once",
    paragraphs: [
      "`/create`, `/execute`, `/executeEncoded`, `/executePasskey`, `/transactSigner` and `/unstuck` take a header `Idempotency-Key`. Choose a new key for each action that must happen once. A repeat has the same key and body. castellan never sends it to the chain a second time, even if the first answer was lost, both arrive at the same time, or the service restarts in between. A repeat gets the current outcome of the request, which is final once it is settled.",
      "`GET /requests/{requestId}` returns the same without the body: `state` is `pending` until the outcome is final; then `httpStatus` and `answer` are those of the endpoint."
    ],
    points: [
      "With `Prefer: respond-async` a write is answered with 202, its `requestId` and a `Location` as soon as it is accepted; closing the connection does not stop it. A request that is refused before is answered as without the header, and a repeat of a final request gets the final answer.",
      "`GET /requests/{requestId}?wait=30` is answered as soon as the request is final, at the latest after that many seconds (at most 60). A final outcome changes only if a reorganisation of the chain reverts its transaction.",
      "`GET /requests/{requestId}/events` is a stream of Server-Sent Events, one for each step of the request. It ends with the final answer. A later event `settled` says that no reorganisation can revert the transaction any more, `reopened` that one has: a stream that is opened again receives them, and so does a webhook.",
      "`GET /requests` lists accepted requests, the newest first; `next` of a page is the `cursor` of the one after it. It finds those of one `state`, of a time (`since`, `until`), with operations of one `wallet`, with one member of their metadata (`metadata=order:4711`), or of all of these together. A page may have fewer requests than `limit`, or none, while `next` names the continuation of the search.",
      'A write takes a header `Request-Metadata`: a JSON object of strings (`{"order":"4711"}`) that `GET /requests` and `GET /requests/{requestId}` return, and webhooks contain. A repeated request keeps its first metadata: an `Idempotency-Key` does not compare metadata.',
      "`DELETE /requests/{requestId}` cancels the elements of an accepted request that were not signed yet.",
      "A key belongs to one account and one endpoint. The body is compared byte by byte, white space included; another body is 400 `idempotency_key_reused`.",
      "A request that was refused before anything was signed, or had nothing to send, does not bind its key, which can be used again. Once a repeat is refused, an earlier copy of it that another replica still prepares is not accepted either: it gets 503. The key is taken from the moment that the request is accepted, which is after simulation and before the first signature.",
      "Keys and answers are kept for 30 days, and at least until the outcome is final."
    ]
  },
  {
    title: "Signing ops yourself",
    paragraphs: [
      "`/estimateGas` returns, for each op, `encodedUserOp`, `userOpHash`, `signingHash` and `bundler`. Sign one of the two hashes with keys that the wallet accepts and send `encodedUserOp`, `userOpHash` and your `signature` to `/executeEncoded`, with the same settings, the same signer and the same window.",
      "With `settings.signer`, the EOA of that signer submits and pays. Without it the service's own EOA submits, for wallets of the account's own profile whose ops pay for it; `/estimateGas` without a signer makes such ops. An op that is refused with 422 `op does not pay for its submission` was changed, or has waited too long: estimate again.",
      "An op can be signed under conditions: the window `validAfter` to `validUnitl`, and the one address that may submit it. `signingHash` binds the op to the conditions of this request; its EIP-712 message is below. When all three conditions are zero, the signing hash is `userOpHash` itself.",
      "A signature over `userOpHash` is unbound: it is accepted when the request has no window, and every observer of the op may submit it. Prefer `signingHash`."
    ],
    points: [
      "`userOpHash` is the hash of ERC-4337 for the EntryPoint's version; it binds the chain, the EntryPoint and the wallet.",
      "`signature` is the proof, not the op's whole signature: r, s and v in 65 bytes, with s in the lower half of the order, over the 32 bytes of the hash or their EIP-191 form (`personal_sign`). For a threshold several proofs are concatenated in any order. With passkeys it is `abi.encode(bytes ecdsa, PasskeyProof[] passkeys)`.",
      "The op's signature on the chain is `abi.encode(uint48 validUntil, uint48 validAfter, address bundler, bytes proof)`.",
      "Ops of operations that depend on each other are linked: send them together, in one request.",
      "Every signature is verified before any gas is spent; the error says which hash was expected."
    ],
    code: `domain  EIP712Domain(string name,string version)   name = "castellan", version = "1"
message Conditions(bytes32 userOpHash,uint48 validUntil,uint48 validAfter,address bundler)`
  },
  {
    title: "Signing with passkeys",
    paragraphs: [
      "`/passkeyHash` returns the same for wallets with passkeys. In the browser, `signingHash` is the challenge; the authenticator's response goes to `/executePasskey`, each part in base64 or base64url, with `encodedUserOp` and `userOpHash` unchanged. The service's own EOA submits, so there is no signer."
    ],
    points: [
      'User verification is required, by the wallet on the chain too: ask for `userVerification: "required"`.',
      "The signature may be DER, as browsers give it, and its s in either half.",
      "A wallet that needs more than one passkey takes its proofs together through `/executeEncoded`."
    ]
  }
]

export const markdown = ({ code, paragraphs, points, title }: Chapter): string =>
  [
    `## ${title}\n`,
    ...paragraphs.map((text) => `${text}\n`),
    ...(points === undefined ? [] : [`${points.map((text) => `- ${text}`).join("\n")}\n`]),
    ...(code === undefined ? [] : [`\`\`\`\n${code}\n\`\`\`\n`])
  ].join("\n")
