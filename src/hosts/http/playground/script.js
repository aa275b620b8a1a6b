// The package exports this module as castellan/passkeys.
import { register, sign } from "./passkeys.js"

const byId = (id) => document.getElementById(id)

const toBase64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))

// ------------------------------------------------------------------------------------------------- the service

/** A refusal by the service: its error's message and subject. */
class Refused extends Error {}

const ask = async (path, body) => {
  const request = JSON.stringify(body, null, 2)
  const entry = note(`POST ${path}`, request)
  const response = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-API-Key": byId("apiKey").value },
    body: request
  })
  const answer = await response.json()
  entry(response.status, JSON.stringify(answer, null, 2))
  if (response.ok) return answer
  const details = (answer.details ?? [])
    .filter(({ message }) => message !== answer.error)
    .map(({ path, message }) => (path === "" ? message : `${path}: ${message}`))
  throw new Refused([answer.error, ...details].join("; "))
}

/** Resolves when the settings are complete. */
let filled = Promise.resolve()

const settings = async () => {
  await filled
  const more = JSON.parse(byId("settings").value)
  return { rpc: byId("rpc").value, ...more }
}

/** The service submits operations of passkeys itself, without a signer. */
const withoutSigner = ({ signer, ...others }) => others

// ------------------------------------------------------------------------------------------------ the passkey

const stored = "castellan.playground.passkey"

/** Only public data: the credential's id and its public key. */
const passkey = () => JSON.parse(localStorage.getItem(stored) ?? "null")

const createPasskey = async () => {
  const made = await register({ name: "castellan playground", user: { name: "playground" } })
  localStorage.setItem(stored, JSON.stringify(made))
  if (wallet !== null) renew()
  finish("The passkey is created.", "good")
}

// ------------------------------------------------------------------------------------------------- the wallet

const startTokens = "1000"

/** Address of the created wallet; null: none on this page yet. */
let wallet = null

/** A new salt, so that the next wallet is another one. */
const renew = () => {
  wallet = null
  byId("salt").value = `playground ${toBase64(crypto.getRandomValues(new Uint8Array(6)))}`
}

const account = () => ({ salt: byId("salt").value, walletCustody: 5 })

const createWallet = async () => {
  if (wallet !== null) renew()
  const result = await ask("/create", {
    accounts: [{ ...account(), passkeyPubKey: [passkey().publicKey] }],
    settings: await settings()
  })
  if (result.status === 0) return finish("The wallet was not created.", "bad", result)
  const [{ wallet: made }] = result.returnData.flatMap((one) => Object.values(one))
  const { rpc, signer } = await settings()
  await ask("/transactSigner", {
    to: byId("token").value,
    funcSignature: "mint(address,uint256)",
    funcParams: [made, startTokens],
    settings: { rpc, signer }
  })
  wallet = made
  finish(result.status === 2 ? "The wallet existed already." : "The wallet is created.", "good", result)
}

/** Executes one operation of the wallet, from the call to its receipt. */
const send = async () => {
  const common = withoutSigner(await settings())
  const { results } = await ask("/passkeyHash", {
    operations: [
      {
        wallet,
        walletCustody: 5,
        to: byId("token").value,
        funcSignature: "transfer(address,uint256)",
        funcParams: [byId("recipient").value, byId("amount").value]
      }
    ],
    settings: common
  })
  const [{ encodedUserOp, error, signingHash, userOpHash }] = results
  if (error !== null) throw new Refused(error)
  const validationData = await sign({ signingHash, ids: [passkey().id] })
  const result = await ask("/executePasskey", {
    operations: [{ encodedUserOp, userOpHash, validationData }],
    settings: common
  })
  if (result.status !== 1) return finish("The transfer failed.", "bad", result)
  byId("title").textContent = `Your wallet sent ${amount()} tokens`
  byId("lead").textContent =
    `You signed once, with your passkey. The wallet holds no coins: ${payer(result)} paid the gas.`
  sent = true
  finish("The transfer succeeded.", "good", result)
}

let sent = false

const amount = () => Number(byId("amount").value).toLocaleString("en-US")

// --------------------------------------------------------------------------------------------------- the page

const element = (name, attributes, ...children) => {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...children)
  return made
}

let exchanges = 0

/** Adds a request to the list; returns a function that adds its response. */
const note = (title, request) => {
  const summary = element("summary", {}, title)
  const details = element(
    "details",
    {},
    summary,
    element("h3", {}, "Request"),
    element("pre", { tabindex: "0" }, request)
  )
  byId("exchange").prepend(details)
  exchanges += 1
  byId("exchange-count").textContent = `${exchanges}, the newest first`
  return (status, answer) => {
    summary.textContent = `${title}: ${status}`
    details.append(element("h3", {}, "Answer"), element("pre", { tabindex: "0" }, answer))
  }
}

const cut = (hex) => `${hex.slice(0, 6)}…${hex.slice(-4)}`

const copyIcon = "M8.5 8.5h12v12h-12zM15.5 5.5v-2h-12v12h2"

const icon = (path) => {
  const drawn = ["svg", "path"].map((name) => document.createElementNS("http://www.w3.org/2000/svg", name))
  drawn[0].setAttribute("viewBox", "0 0 24 24")
  drawn[0].setAttribute("aria-hidden", "true")
  drawn[1].setAttribute("d", path)
  drawn[0].append(drawn[1])
  return drawn[0]
}

/** A shortened hash or address with its copy button. */
const short = (hex, what) => {
  const copy = element("button", {
    type: "button",
    title: "Copy",
    "aria-label": `Copy the ${what} ${cut(hex)}`
  })
  copy.append(icon(copyIcon))
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(hex)
    byId("status").textContent = "Copied."
    copy.className = "copied"
    setTimeout(() => {
      copy.className = ""
    }, 1_200)
  })
  return element("span", { class: "short" }, element("code", { title: hex }, cut(hex)), copy)
}

/** Wei as a decimal number of the chain's coin. */
const coins = (wei) => `${Number((Number(wei) / 1e18).toPrecision(6))} ETH`

/** Arguments of a UserOperationEvent that matter to a reader; other events are shown whole. */
const told = ["success", "paymaster", "actualGasCost"]

const shownArgument = ([name, value]) => {
  if (name === "actualGasCost") return `${name} ${coins(value)}`
  const text = String(value)
  return `${name} ${/^0x.{39,}$/.test(text) ? cut(text) : text}`
}

const shownLog = ({ args, eventName }) =>
  element(
    "div",
    {},
    element("dt", {}, eventName ?? "not decoded"),
    element(
      "dd",
      {},
      Object.entries(args)
        .filter(([name]) => eventName !== "UserOperationEvent" || told.includes(name))
        .map(shownArgument)
        .join(", ")
    )
  )

const eventOf = ({ logs }, name) => logs.find(({ eventName }) => eventName === name)?.args

const payer = (result) => {
  const { paymaster = "" } = eventOf(result, "UserOperationEvent") ?? {}
  return BigInt(paymaster) === 0n ? "the wallet" : "the sponsor"
}

/** Sender, amount and recipient of a transfer. */
const flow = ({ from, to, value }) =>
  element(
    "p",
    { class: "flow" },
    short(from, "wallet"),
    element("span", { "aria-hidden": "true" }, "→"),
    element("span", {}, element("b", {}, Number(value).toLocaleString("en-US")), " tokens"),
    element("span", { "aria-hidden": "true" }, "→"),
    element("span", { class: "unseen" }, "to"),
    short(to, "recipient")
  )

const showResult = (text, state, result) => {
  byId("result").hidden = result === undefined && state === "good"
  byId("result-state").textContent = state === "good" ? "Succeeded" : "Failed"
  byId("result-state").className = `state ${state}`
  byId("result-gas").textContent = ""
  byId("result-body").replaceChildren(...(state === "bad" ? [element("p", { class: "reason" }, text)] : []))
  if (result === undefined) return
  const { gasUsed, logs, returnData, txHash } = result
  const operation = eventOf(result, "UserOperationEvent")
  byId("result-gas").textContent =
    `${gasUsed.toLocaleString("en-US")} gas${operation === undefined ? "" : `, paid by ${payer(result)}`}`
  const errors = returnData.flatMap((one) => Object.values(one)).flatMap(({ error }) => error ?? [])
  const transfer = eventOf(result, "Transfer")
  byId("result-body").append(
    ...errors.map((error) => element("p", { class: "reason" }, error)),
    ...(transfer === undefined ? [] : [flow(transfer)]),
    element(
      "dl",
      { class: "log", "aria-label": "Decoded logs" },
      ...logs.filter(({ args }) => Object.keys(args).length > 0).map(shownLog),
      ...(txHash === ""
        ? []
        : [
            element(
              "div",
              {},
              element("dt", {}, "transaction"),
              element("dd", {}, short(txHash, "transaction"))
            )
          ])
    )
  )
}

/** The three steps: what they do, and their words before and after. */
const steps = [
  {
    task: createPasskey,
    isDone: () => passkey() !== null,
    during: "Your device asks for you.",
    before: ["Create a passkey", () => ["Asks your device once"]],
    after: [
      "Create another",
      () => [
        "ES256,",
        element("code", { id: "publicKey", title: passkey().publicKey }, cut(passkey().publicKey))
      ]
    ]
  },
  {
    task: createWallet,
    isDone: () => wallet !== null,
    during: "The service creates the wallet and mints tokens.",
    before: ["Create the wallet", () => ["No signature needed"]],
    after: ["Create another", () => [short(wallet, "wallet")]]
  },
  {
    task: send,
    isDone: () => sent,
    during: "Your device asks for you.",
    before: ["Send", () => ["Asks your device once"]],
    after: ["Send again", () => ["to", short(byId("recipient").value, "recipient")]]
  }
]

const button = (index) => byId(`step-${index + 1}`)

/** Brings the steps to what is done. */
const showSteps = () => {
  const current = steps.findIndex(({ isDone }) => !isDone())
  for (const [index, { after, before, isDone }] of steps.entries()) {
    const reachable = current === -1 || index <= current
    const [label, notes] = isDone() && reachable ? after : before
    const item = button(index).parentElement
    item.className = isDone() && reachable ? "done" : ""
    if (index === current) item.setAttribute("aria-current", "step")
    else item.removeAttribute("aria-current")
    button(index).disabled = !reachable
    button(index).textContent =
      index < 2 ? label : label === "Send" ? `Send ${amount()} tokens` : `Send ${amount()} again`
    byId(`step-${index + 1}-note`).replaceChildren(...(reachable ? notes() : [`After step ${index}`]))
  }
}

const [title, lead] = [byId("title").textContent, byId("lead").textContent]

const finish = (text, state, result) => {
  showSteps()
  if (state === "bad") {
    byId("title").textContent = title
    byId("lead").textContent = lead
  }
  showResult(text, state, result)
  byId("status").textContent = text
  byId("status").className = `unseen ${state}`
}

let busy = false

/** Runs one step at a time. Buttons stay enabled, to keep the focus, and do nothing while a step runs. */
const run = async (index) => {
  const { during, task } = steps[index]
  if (busy) return
  if (!byId("service").checkValidity()) {
    byId("settings-box").open = true
    byId("service").reportValidity()
    return
  }
  busy = true
  for (const at of steps.keys()) button(at).setAttribute("aria-disabled", "true")
  byId("status").textContent = during
  byId("status").className = "unseen"
  byId(`step-${index + 1}-note`).replaceChildren(during)
  try {
    await task()
  } catch (problem) {
    finish(problem instanceof Error ? problem.message : String(problem), "bad")
  } finally {
    busy = false
    for (const at of steps.keys()) button(at).removeAttribute("aria-disabled")
  }
}

for (const index of steps.keys()) button(index).addEventListener("click", () => run(index))
byId("service").addEventListener("submit", (event) => event.preventDefault())
byId("amount").addEventListener("input", showSteps)
byId("salt").addEventListener("input", () => {
  wallet = null
  sent = false
  showSteps()
})

/** Completes settings with an EntryPoint and the paymaster of the chain. */
const fillSettings = async (chain, signer) => {
  const response = await fetch("/networks", { headers: { "X-API-Key": byId("apiKey").value } })
  const networks = response.ok ? await response.json() : []
  const network = networks.find(({ chainId }) => String(chainId) === chain)
  if (network === undefined) return
  const entryPoint = network.entryPoints.find(({ version }) => version === "v0.7") ?? network.entryPoints[0]
  const [clientId, versionId] = signer.split("/")
  const found = {
    entryPoint: entryPoint.address,
    signer: { clientId, versionId },
    ...(network.paymaster !== null && { paymaster: network.paymaster })
  }
  byId("settings").value = JSON.stringify(found, null, 2)
  byId("service-state").textContent = "Development chain is ready"
  byId("service-state").className = "state good"
}

/** Reads the development stack's values from the fragment, which browsers never send. */
const fill = () => {
  if (location.hash.length < 2 || location.hash === "#main") return
  const values = new URLSearchParams(location.hash.slice(1))
  for (const [id, name] of [
    ["apiKey", "key"],
    ["rpc", "rpc"],
    ["token", "token"]
  ])
    byId(id).value = values.get(name)
  history.replaceState(null, "", location.pathname)
  filled = fillSettings(values.get("chain"), values.get("signer"))
}

renew()
fill()
addEventListener("hashchange", fill)
showSteps()
if (!isSecureContext || /^[0-9.]+$|:/.test(location.hostname)) {
  byId("notice").hidden = false
  byId("notice").textContent =
    `Browsers make passkeys for names alone, over HTTPS or on localhost: open this page at http://localhost:${location.port}/playground.`
} else if (byId("apiKey").value === "") {
  byId("settings-box").open = true
  byId("notice").hidden = false
  byId("notice").textContent =
    "This page knows no service yet: open the link that castellan dev prints, or fill in the fields below."
}
