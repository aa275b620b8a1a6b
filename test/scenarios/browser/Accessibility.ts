import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import type { Page } from "playwright-core"

/**
 * A simplified accessibility check of markup and colours: names, labels, landmarks, order of headings, contrast
 * (WCAG 2.2, level AA). It runs inside the page; each line is one breach.
 */
const check = `(() => {
  const breaches = []
  const say = (element, what) => breaches.push(what + ": " + element.outerHTML.slice(0, 80))
  const all = (selector) => [...document.querySelectorAll(selector)]
  const visible = (element) => element.getClientRects().length > 0
  const name = (element) => (element.getAttribute("aria-label") ?? element.textContent ?? "").trim()

  if (document.documentElement.lang === "") breaches.push("no language")
  if (document.title.trim() === "") breaches.push("no title")
  for (const [selector, count] of [["main", 1], ["body > header", 1], ["h1", 1], ["[role=status]", 1]])
    if (all(selector).length !== count) breaches.push("expected " + count + " of " + selector)

  let level = 0
  for (const heading of all("h1, h2, h3, h4").filter(visible)) {
    const own = Number(heading.tagName.slice(1))
    if (own > level + 1) say(heading, "heading skips a level")
    level = own
  }
  for (const field of all("input:not([type=hidden]), textarea, select"))
    if (field.labels.length === 0 || name(field.labels[0]) === "") say(field, "no label")
  for (const control of all("button, a, summary")) if (name(control) === "") say(control, "no name")
  for (const element of all("[tabindex]")) if (element.tabIndex > 0) say(element, "jumps the focus order")
  for (const element of all("[id]")) if (all("#" + CSS.escape(element.id)).length > 1) say(element, "id is not unique")
  for (const attribute of ["aria-labelledby", "aria-describedby"])
    for (const element of all("[" + attribute + "]"))
      if (document.getElementById(element.getAttribute(attribute)) === null) say(element, attribute + " leads nowhere")
  for (const table of all("table")) {
    if (table.caption === null) say(table, "no caption")
    for (const cell of table.querySelectorAll("th")) if (cell.scope === "") say(cell, "heads nothing")
  }
  for (const element of all("*").filter(visible))
    if (
      element.scrollHeight > element.clientHeight + 1 &&
      /auto|scroll/.test(getComputedStyle(element).overflowY) &&
      element.tabIndex < 0
    )
      say(element, "scrolls, but not by keyboard")
  for (const control of all("button, input, textarea").filter(visible)) {
    const { height, width } = control.getBoundingClientRect()
    if (height < 24 || width < 24) say(control, "smaller than 24 pixels")
  }

  const channels = (color) => color.match(/[0-9.]+/g).map(Number)
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((value) => {
      const part = value / 255
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const background = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor
      const alpha = channels(color)[3] ?? 1
      if (alpha === 1) return color
    }
    return "rgb(255, 255, 255)"
  }
  for (const element of all("body *").filter(visible)) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== "")
    if (!own && !element.matches("input, textarea")) continue
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(background(element))]
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
    if (ratio < 4.5) say(element, "contrast " + ratio.toFixed(1))
  }
  if (document.documentElement.scrollWidth > innerWidth) breaches.push("scrolls sideways: " + ([...all("*")].filter((each) => each.getBoundingClientRect().right > innerWidth + 1).at(-1)?.outerHTML.slice(0, 80) ?? ""))
  return breaches
})()`

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")

interface Violation {
  readonly id: string
  readonly impact: "minor" | "moderate" | "serious" | "critical"
  readonly nodes: ReadonlyArray<{ readonly target: ReadonlyArray<string> }>
}

/** Findings of axe in the page, one line each: impact, rule and the first places. */
export const violations = async (page: Page): Promise<ReadonlyArray<string>> => {
  await page.evaluate(axe)
  const found = await page.evaluate<ReadonlyArray<Violation>>(
    "axe.run().then(({ violations }) => violations)"
  )
  return found.map(
    ({ id, impact, nodes }) =>
      `${impact}: ${id} (${nodes.length}): ${nodes
        .slice(0, 3)
        .map(({ target }) => target.join(" "))
        .join("; ")}`
  )
}

export const breaches = (page: Page): Promise<ReadonlyArray<string>> => page.evaluate(check)

const focused = `(() => {
  const element = document.activeElement
  const { outlineStyle, outlineWidth } = getComputedStyle(element)
  const { bottom, top } = element.getBoundingClientRect()
  return {
    name: element.id || element.getAttribute("aria-label") || element.textContent.trim().slice(0, 40),
    outlined: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
    inView: bottom > 0 && top < innerHeight
  }
})()`

interface Focus {
  readonly name: string
  /** True if the focus is visible. */
  readonly outlined: boolean
  readonly inView: boolean
}

/** Focus order of the Tab key; the skip link must come first. */
export const walk = async (page: Page, steps: number): Promise<ReadonlyArray<Focus>> => {
  const path: Array<Focus> = []
  await page.evaluate("document.querySelector('body > :first-child').focus()")
  // Browsers show a focus set by the keyboard.
  await page.keyboard.press("Tab")
  await page.keyboard.press("Shift+Tab")
  for (let step = 0; step < steps; step++) {
    path.push(await page.evaluate<Focus>(focused))
    await page.keyboard.press("Tab")
  }
  return path
}
