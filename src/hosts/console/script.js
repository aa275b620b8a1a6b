// The console works without this script. It adds live refresh, copy buttons, relative times and "/" for the search.
const all = (selector, root = document) => [...root.querySelectorAll(selector)]
const every = 10_000
let live = true,
  at = Date.now()

const ago = (seconds) => {
  const s = Math.max(0, Math.round(seconds))
  if (s < 90) return `${s} s`
  if (s < 5_400) return `${Math.round(s / 60)} min`
  return s < 129_600 ? `${Math.round(s / 3_600)} h` : `${Math.round(s / 86_400)} d`
}

// The server's clock counts: <html data-now> is when the page was made.
let skew = Date.parse(document.documentElement.dataset.now) - Date.now()
const tick = () => {
  for (const time of all("time[data-ago]"))
    time.textContent = `${ago((Date.now() + skew - Date.parse(time.dateTime)) / 1_000)}${time.dataset.ago}`
  const updated = document.querySelector("#updated")
  if (updated !== null)
    updated.textContent = live ? `updated ${ago((Date.now() - at) / 1_000)} ago` : "refresh paused"
}

const seen = new Map(all("[data-live]").map((part) => [part.id, part.innerHTML]))

const dress = (root) => {
  for (const button of all("button[data-copy]", root)) button.hidden = false
}

// Only marked regions are replaced, and none that has the focus, an open dialog or an open fold.
const busy = (part) =>
  part.contains(document.activeElement) || part.querySelector(":popover-open, details[open]") !== null

const refresh = async () => {
  if (!live || document.hidden) return
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } })
    if (!answer.ok || answer.redirected) throw new Error(String(answer.status))
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html")
    for (const part of all("[data-live]")) {
      const next = fresh.getElementById(part.id)
      if (next === null || busy(part) || next.innerHTML === seen.get(part.id)) continue
      part.innerHTML = next.innerHTML
      seen.set(part.id, next.innerHTML)
      dress(part)
    }
    document.title = fresh.title
    skew = Date.parse(fresh.documentElement.dataset.now) - Date.now()
    at = Date.now()
  } catch {
    const updated = document.querySelector("#updated")
    if (updated !== null) updated.textContent = "the console does not answer"
    return
  }
  tick()
}

document.addEventListener("click", async ({ target }) => {
  const copy = target.closest("button[data-copy]")
  if (copy !== null) {
    await navigator.clipboard.writeText(copy.dataset.copy)
    document.querySelector("#said").textContent = "Copied."
    copy.classList.add("t-ok")
    setTimeout(() => copy.classList.remove("t-ok"), 1_200)
  }
  const toggle = target.closest("#live")
  if (toggle !== null) {
    live = !live
    toggle.setAttribute("aria-pressed", String(live))
    if (live) await refresh()
    tick()
  }
  if (target.closest("[data-print]") !== null) print()
})

document.addEventListener("keydown", (event) => {
  if (
    event.key !== "/" ||
    event.ctrlKey ||
    event.metaKey ||
    /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)
  )
    return
  event.preventDefault()
  document.querySelector("#q")?.focus()
})

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" })
for (const element of all("#live, [data-print]")) element.hidden = false
dress(document)
if (document.querySelector("[data-live]") !== null) setInterval(refresh, every)
setInterval(tick, 1_000)
tick()
