import * as Effect from "effect/Effect"
import type { RequestRecord } from "../../../application/ports/journal/Requests.js"
import * as Preview from "../../../application/preview/Preview.js"
import type * as Token from "../../../domain/evm/Token.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Chains from "../Chains.js"
import type { Data } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import * as Tokens from "../Tokens.js"

/** Balances that a request changes: as expected before acceptance, and as its logs show afterwards. */

interface Moved {
  readonly who: Address.Address
  readonly asset: Address.Address | "native"
  /** Of a token that is one of a kind; null: an amount moved. */
  readonly tokenId: bigint | null
  readonly change: bigint
}

type Change = Omit<Token.Transfer, "kind" | "from"> & { readonly from: Address.Address | null }

/** Balance changes by holder and asset that transfers make together. */
const sumsOf = (transfers: ReadonlyArray<Change>): ReadonlyArray<Moved> => {
  const sums = new Map<string, Moved>()
  const add = (who: Address.Address | null, { id, token }: Change, change: bigint) => {
    if (who === null || BigInt(who) === 0n) return
    const key = `${who} ${token} ${id ?? ""}`
    const known = sums.get(key)
    sums.set(key, { who, asset: token, tokenId: id, change: change + (known?.change ?? 0n) })
  }
  for (const transfer of transfers) {
    add(transfer.from, transfer, -transfer.amount)
    add(transfer.to, transfer, transfer.amount)
  }
  return [...sums.values()].filter(({ change }) => change !== 0n)
}

const mostMoved = 100

const assetOf = (data: Data, chainId: bigint, asset: Moved["asset"]) =>
  asset === "native"
    ? Effect.succeed({
        label: html`${Chains.of(chainId).coin}`,
        amountOf: (wei: bigint) => Page.coins(wei, chainId)
      })
    : Effect.map(Tokens.of(data, chainId, asset), (token) => ({
        label: html`${token?.symbol ?? "token"} ${Page.address(asset, chainId)}`,
        amountOf: (amount: bigint) => Tokens.amount(amount, token)
      }))

export const table = (
  data: Data,
  chainId: bigint,
  transfers: ReadonlyArray<Change>,
  names: ReadonlyMap<string, string>,
  more: ReadonlyArray<ReadonlyArray<Part>> = []
): Effect.Effect<Html> =>
  Effect.map(
    Effect.forEach(sumsOf(transfers).slice(0, mostMoved), ({ asset, change, tokenId, who }) =>
      Effect.map(assetOf(data, chainId, asset), ({ amountOf, label }) => {
        const sign = change > 0n ? "+ " : "− "
        const amount = change > 0n ? change : -change
        const name = names.get(who)
        return [
          html`${name ?? Page.address(who, chainId)}${name === undefined && !names.has(who) ? html`<small>not a wallet of this request</small>` : null}`,
          label,
          tokenId === null ? `${sign}${amountOf(amount)}` : `${sign}no. ${tokenId}`
        ]
      })
    ),
    (rows) =>
      Page.table(
        "Changes of balances",
        ["Who", "Asset", { name: "Change", isRight: true }],
        [...rows, ...more],
        "Nothing moves."
      )
  )

type Previews = NonNullable<typeof Preview.stored.Type>

const changesOf = (previews: Previews): ReadonlyArray<Change> =>
  previews.flatMap(({ preview }) =>
    (preview?.transfers ?? []).map(({ amount, from, id, to, token }) => ({
      token: token === "native" ? token : Address.unsafe(token),
      from: from === null ? null : Address.unsafe(from),
      to: Address.unsafe(to),
      amount: BigInt(amount),
      id: id === null ? null : BigInt(id)
    }))
  )

/** Rows of what spenders may take after the calls. */
const allowances = (data: Data, chainId: bigint, previews: Previews) =>
  Effect.forEach(
    previews.flatMap(({ preview }) => preview?.approvals ?? []).slice(0, mostMoved),
    ({ amount, isUnlimited, spender, token }) =>
      Effect.map(assetOf(data, chainId, Address.unsafe(token)), ({ amountOf, label }) => [
        html`${Page.address(spender, chainId)}<small>spender</small>`,
        label,
        isUnlimited ? html`<b class="t-part">may take all</b>` : `may take ${amountOf(BigInt(amount))}`
      ])
  )

const basis = (previews: Previews): string => {
  const [block] = previews.flatMap(({ preview }) => preview?.block ?? [])
  return block === undefined
    ? "read from the calldata, without a simulation"
    : `simulated on block ${Page.count(BigInt(block))}, before acceptance`
}

/** Effects of a request without an answer, as seen before its acceptance. */
export const expected = (
  data: Data,
  chainId: bigint,
  { previews }: RequestRecord,
  names: ReadonlyMap<string, string>
) =>
  Effect.gen(function* () {
    const shown = Preview.read(previews)
    if (shown === null) return null
    const sum = (of: "most" | "expected") =>
      shown.reduce((total, { preview }) => total + BigInt(preview?.fees?.[of] ?? 0), 0n)
    const changes = yield* table(
      data,
      chainId,
      changesOf(shown),
      names,
      yield* allowances(data, chainId, shown)
    )
    const notes = shown.map(({ index, preview, previewError }) => {
      if (previewError !== null) return html`<p class="in dim">Operation ${index}: ${previewError}</p>`
      return preview?.net?.every(({ isVerified }) => isVerified) === false
        ? html`<p class="in t-part">${Page.icon("late")} Operation ${index}: balances differ from the tokens' logs.</p>`
        : null
    })
    return html`<div class="two">${Page.box("Expected changes", html`${changes}${notes}`, html`<small>${basis(shown)}</small>`)}
${Page.box(
  "Fees",
  Page.rows([
    ["At most", Page.coins(sum("most"), chainId)],
    ["Expected", Page.coins(sum("expected"), chainId)]
  ])
)}</div>`
  })
