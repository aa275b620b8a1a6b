import * as Effect from "effect/Effect"
import * as Series from "../../../application/operate/Series.js"
import * as Chains from "../Chains.js"
import type { Data, Missing, View } from "../Data.js"
import { type Html, html } from "../Html.js"
import * as Page from "../Page.js"
import { unreadable } from "./Lanes.js"
import { incidentList, statusOf } from "./Overview.js"
import * as Pauses from "./Pauses.js"

const wordOf = (name: string): string =>
  name === "sponsor" ? "sponsored gas" : name.startsWith("deposit:") ? "paymaster deposit" : name

/** One chain: its node, its EOAs, its sponsor and budgets, its settings. */
export const chain = (data: Data, view: View, chainId: bigint): Effect.Effect<Html, Missing> =>
  Effect.gen(function* () {
    const situation = data.observer.situation()
    const health = situation.facts.chains.find(({ profile }) => profile.chainId === chainId)
    if (health === undefined)
      return yield* Effect.fail<Missing>({ message: "the configuration has no such chain", status: 404 })
    const { answerMillis, answeredAt, deposits, eoas, failing, head, headAt, profile } = health
    const { now } = view
    const day = yield* data.observer.series.day
    const holds = yield* Effect.mapError(data.budgets.open(chainId), ({ message }) => ({
      message: `budgets cannot be read: ${message}`
    }))
    const open = yield* Effect.mapError(data.transactions.open, unreadable)
    const held = Map.groupBy(holds, ({ accountId, name }) => `${accountId ?? ""}\n${name}`)
    const incidents = situation.incidents.filter((each) => each.chainId === chainId)
    const pause = (yield* Effect.mapError(data.tenants.content, Pauses.unreadable)).pauses.find(
      ({ kind, subject }) => kind === "chain" && subject === chainId.toString()
    )
    return html`${Page.head(
      html`${Chains.of(chainId).name} ${pause === undefined ? statusOf(chainId, situation) : Page.status("pause", "Paused")}`,
      `Chain id ${chainId}.`,
      Pauses.act(view, pause === undefined ? "pause" : "resume", "chain", chainId.toString(), "chain"),
      html`<a href="${Page.path}">Overview</a> › Chains`
    )}
${incidentList(view, incidents)}
${Page.box(
  "Node",
  profile.rpc === null
    ? html`<p class="in dim">The operator has no node of this chain: callers name theirs.</p>`
    : Page.facts([
        [
          "Head block",
          head === null
            ? "not read yet"
            : html`#${Page.count(head.number)}<small>${Page.age((now - head.timestamp * 1_000) / 1_000)} old</small>`
        ],
        ["Newest block seen", headAt === null ? "never" : Page.ago(headAt, now)],
        [
          "Answer time",
          failing !== null
            ? html`<span class="t-bad">none</span>`
            : answerMillis === null
              ? "not asked yet"
              : `${Math.round(answerMillis)} ms`
        ],
        [
          "Failed polls",
          failing === null
            ? "0"
            : html`<span class="t-bad">${failing.polls}</span><small>${failing.message}</small>`
        ],
        ["Last answer", answeredAt === null ? "never" : Page.ago(answeredAt, now)],
        [
          "Base fee",
          head?.baseFeePerGas == null
            ? "none"
            : html`${Page.gwei(head.baseFeePerGas)}<small>cap ${Page.gwei(profile.caps.maxFeePerGas)}</small>`
        ]
      ]),
  null,
  true
)}
${Page.box(
  "Submitting EOAs",
  Page.table(
    `EOAs that submit on ${Chains.of(chainId).name}`,
    ["EOA", "Balance", "Runway", "Waiting transactions", "Read"],
    [...eoas].map(([address, reading]) => {
      const daily = Series.dailyGas(day, chainId, address)
      const waiting = open.filter(
        (each) => each.chainId === chainId && each.signer === address && each.state === "signed"
      )
      return [
        Page.address(address, chainId),
        html`<span class="${reading.wei === 0n ? "t-bad" : reading.wei < health.lowBalance ? "t-part" : ""}">${Page.coins(reading.wei, chainId)}</span>`,
        daily === null ? "cost not measured yet" : `≈ ${Page.age((86_400 * Number(reading.wei)) / daily)}`,
        html`<a href="${Page.path}/lanes/${chainId}/${address}">${waiting.length} of ${profile.maxInFlight}</a>`,
        Page.ago(reading.at, now)
      ]
    }),
    "No EOA has submitted here since this process started."
  ),
  html`<small>low below ${Page.coins(health.lowBalance, chainId)}</small>`,
  true
)}
<div class="two">${Page.box(
      "Sponsor and budgets",
      html`${Page.table(
        "Deposits of the paymaster",
        ["EntryPoint", "Deposit", "Read"],
        [...deposits].map(([entryPoint, reading]) => [
          Page.address(entryPoint, chainId),
          Page.coins(reading.wei, chainId),
          Page.ago(reading.at, now)
        ]),
        profile.sponsor === null ? "The chain has no sponsor." : "No deposit was read yet."
      )}
${Page.table(
  "Held amounts",
  ["Account", "Budget", { name: "Open", isRight: true }, { name: "Held", isRight: true }],
  [...held.values()].map((own) => {
    const [first] = own
    const sum = own.reduce((total, { landed, wei }) => total + (landed ?? wei), 0n)
    return [
      first?.accountId ?? "the operator",
      wordOf(first?.name ?? ""),
      own.filter(({ landed }) => landed === null).length,
      Page.coins(sum, chainId)
    ]
  }),
  "Nothing is held."
)}
${Page.rows(
  situation.facts.budgets
    .filter((each) => each.chainId === chainId)
    .map(({ accountId, limit, spent }) => [
      `Sponsored for ${accountId} today`,
      html`${Page.coins(spent, chainId)} of ${Page.coins(limit, chainId)} ${Page.meter(Number(spent) / Math.max(1, Number(limit)), "Budget used")}`
    ])
)}`,
      html`<small>${new Date(now).toISOString().slice(0, 10)}, UTC</small>`
    )}
${Page.box(
  "Settings",
  Page.rows([
    ["Confirmations, settled depth", `${profile.confirmations}, ${profile.settledDepth} blocks`],
    ["Replaced after", `${profile.bumpAfterMillis / 1_000} s`],
    [
      "Caps: fee, tip",
      `${Page.gwei(profile.caps.maxFeePerGas)}, ${Page.gwei(profile.caps.maxPriorityFeePerGas)}`
    ],
    ["Bundler", profile.remoteBundler === null ? "castellan's own" : "an external one"],
    ["Factory", profile.factory === null ? "none" : Page.address(profile.factory, chainId)],
    [
      "Wallet code",
      profile.implementationCodeHash === null
        ? Page.status("late", "Not pinned")
        : Page.status("ok", "Pinned")
    ]
  ])
)}</div>`
  })
