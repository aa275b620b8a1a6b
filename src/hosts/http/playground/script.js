// The package exports this module as castellan/passkeys.
import { register, sign } from "./passkeys.js"

const byId = (id) => document.getElementById(id)

// ---------------------------------------------------------------------------------------------- bytes as text

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

const settings = () => {
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
  const made = await register({ name: "castellan playground", user: { name: byId("name").value } })
  localStorage.setItem(stored, JSON.stringify(made))
  byId("publicKey").textContent = passkey().publicKey
  show("The passkey is made.", [])
}

// ------------------------------------------------------------------------------------------------- the wallet

const account = () => ({ salt: byId("salt").value, walletCustody: 5 })

const needPasskey = () => {
  if (passkey() === null) throw new Refused("Create a passkey first.")
}

const predict = async () => {
  const [{ exists, wallet, error }] = await ask("/check", {
    accounts: [account()],
    settings: withoutSigner(settings())
  })
  if (error !== null) throw new Refused(error)
  byId("address").textContent = wallet
  byId("deployed").textContent = exists ? "yes" : "no"
  return { exists, wallet }
}

const create = async () => {
  needPasskey()
  const result = await ask("/create", {
    accounts: [{ ...account(), passkeyPubKey: [passkey().publicKey] }],
    settings: settings()
  })
  await predict()
  showResult(result, {
    0: "The wallet was not created.",
    1: "The wallet is created.",
    2: "The wallet stood there already."
  })
}

/** Executes one operation of the wallet, from the call to its receipt. */
const operate = async (funcSignature, funcParams) => {
  needPasskey()
  const { exists, wallet } = await predict()
  if (!exists) throw new Refused("Create the wallet first.")
  const common = withoutSigner(settings())
  const { results } = await ask("/passkeyHash", {
    operations: [
      { wallet, walletCustody: 5, to: byId("token").value, funcSignature, funcParams: funcParams(wallet) }
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
  await balance(wallet)
  showResult(result, { 0: "The operation failed.", 1: "The operation succeeded." })
}

const balance = async (wallet) => {
  const [{ errors, results }] = await ask("/read", {
    reads: [
      {
        to: byId("token").value,
        funcSignature: "balanceOf(address)",
        funcParams: [wallet],
        returnSignature: "uint256"
      }
    ],
    rpc: byId("rpc").value
  })
  byId("balance").textContent = errors ?? results[0]
}

const mint = () => operate("mint(address,uint256)", (wallet) => [wallet, byId("amount").value])
const transfer = () =>
  operate("transfer(address,uint256)", () => [byId("recipient").value, byId("amount").value])

// --------------------------------------------------------------------------------------------------- the page

const element = (name, attributes, ...children) => {
  const made = document.createElement(name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value)
  made.append(...children)
  return made
}

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
  return (status, answer) => {
    summary.textContent = `${title}: ${status}`
    details.append(element("h3", {}, "Answer"), element("pre", { tabindex: "0" }, answer))
  }
}

const show = (text, children, bad = false) => {
  const status = byId("status")
  status.textContent = text
  status.className = bad ? "bad" : "good"
  byId("result").replaceChildren(...children)
}

const list = (entries) =>
  element(
    "dl",
    {},
    ...entries.flatMap(([name, value]) => [element("dt", {}, name), element("dd", { class: "mono" }, value)])
  )

const logTable = (logs) => {
  const head = ["Event", "Contract", "Arguments"].map((text) => element("th", { scope: "col" }, text))
  const rows = logs.map(({ address, args, eventName }) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, eventName ?? "not decoded"),
      element("td", { class: "mono" }, address),
      element("td", { class: "args" }, JSON.stringify(args))
    )
  )
  const table = element(
    "table",
    {},
    element("caption", {}, "Decoded logs"),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows)
  )
  return element(
    "div",
    { class: "scroll", role: "region", "aria-label": "Decoded logs", tabindex: "0" },
    table
  )
}

/** Shows a decoded transaction result. */
const showResult = ({ gasUsed, logs, returnData, status, txHash }, texts) => {
  const errors = returnData.flatMap((one) => Object.values(one)).flatMap(({ error }) => error ?? [])
  show(
    [texts[status] ?? `Status ${status}.`, ...errors].join(" "),
    [
      list([
        ["Status", status + (status === 0 ? " (failed)" : status === 1 ? " (success)" : "")],
        ["Transaction", txHash === "" ? "none" : txHash],
        ["Gas used", String(gasUsed)]
      ]),
      ...(logs.length === 0 ? [] : [logTable(logs)])
    ],
    status !== 1 && status !== 2
  )
}

const buttons = () => document.querySelectorAll("button")
let busy = false

/** Runs one task at a time. Buttons stay enabled, to keep the focus, and do nothing while a task runs. */
const run = async (what, task) => {
  if (busy) return
  busy = true
  for (const button of buttons()) button.setAttribute("aria-disabled", "true")
  show(what, [])
  byId("status").className = ""
  try {
    await task()
  } catch (problem) {
    show(problem instanceof Error ? problem.message : String(problem), [], true)
  } finally {
    busy = false
    for (const button of buttons()) button.removeAttribute("aria-disabled")
  }
}

const onSubmit = (form, actions) =>
  byId(form).addEventListener("submit", (event) => {
    event.preventDefault()
    const [what, task] = actions[event.submitter?.value || "only"] ?? Object.values(actions)[0]
    if (byId("service").reportValidity()) run(what, task)
  })

onSubmit("service", { only: ["", async () => show("", [])] })
onSubmit("passkey", { only: ["Waiting for your authenticator.", createPasskey] })
onSubmit("wallet", {
  predict: ["Asking for the address.", async () => show(`The address is ${(await predict()).wallet}.`, [])],
  create: ["Creating the wallet.", create]
})
onSubmit("transfer", {
  mint: ["Minting. Your authenticator will ask you.", mint],
  transfer: ["Transferring. Your authenticator will ask you.", transfer]
})

/** Reads the development stack's values from the fragment, which browsers never send. */
const fill = () => {
  if (location.hash.length < 2) return
  const { apiKey, rpc, settings, token } = JSON.parse(decodeURIComponent(location.hash.slice(1)))
  byId("apiKey").value = apiKey
  byId("rpc").value = rpc
  byId("settings").value = JSON.stringify(settings, null, 2)
  byId("token").value = token
  history.replaceState(null, "", location.pathname)
}

fill()
addEventListener("hashchange", fill)
byId("salt").value = `playground ${toBase64(crypto.getRandomValues(new Uint8Array(6)))}`
if (passkey() !== null) byId("publicKey").textContent = passkey().publicKey
if (!isSecureContext || /^[0-9.]+$|:/.test(location.hostname))
  byId("notice").textContent =
    "Browsers make passkeys for names alone, over HTTPS or on localhost: open this page at http://localhost:" +
    location.port +
    "/playground."
