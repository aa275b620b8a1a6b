/**
 * Finds translated-sounding English in Markdown, and in comments and literals of TypeScript, JavaScript and Solidity.
 *
 *     npm run words                 the folders that `npm run check` checks
 *     node tools/prose.mjs PATH...  other files and folders
 *
 * `prose.txt` has the rules. A comment excuses a hit, and says why: `prose-ignore-line RULE`, `prose-ignore-next RULE` or
 * `prose-ignore-file RULE`. `.prose-ignore` lists generated files, one glob a line.
 */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { extname } from "node:path"
import ts from "typescript"

const start = "(?:^|[.!?;:]\\s+(?:and |but |so )?)"
const be = "(?:is|are|was|were|be|been|being)"

/** Rules by name. Without `on` a rule reads every kind of text. */
const rules = new Map()
for (const row of readFileSync(new URL("prose.txt", import.meta.url), "utf8").split("\n")) {
  const [, name, on, say] = /^([a-z-]+)(?: \[(.*)\])?: (.*)$/.exec(row) ?? []
  if (name !== undefined) rules.set(name, { on: on?.split(","), say, at: [] })
  else if (row.startsWith("  ")) {
    const pattern = row.trim().replace(/^= /, "").replaceAll("{start}", start).replaceAll("{be}", be)
    ;[...rules.values()].at(-1).at.push(new RegExp(pattern, row.startsWith("  = ") ? "g" : "gi"))
  }
}

/** A segment: one paragraph, list item, table cell, comment or literal. `starts`: offsets at which its lines begin. */
const segment = (kind, rows) => {
  const starts = []
  let text = ""
  for (const { line, text: row } of rows) {
    const clean = row.replace(/\s+/g, " ").trim()
    if (clean === "") continue
    if (text !== "") text += " "
    starts.push([text.length, line])
    text += clean
  }
  return { kind, text, starts }
}

/** Code, links and markup become neutral words. */
const inline = (row) =>
  row
    .replace(/!?\[([^\]]*)\]\((?:[^()]|\([^()]*\))*\)/g, "$1")
    .replace(/\[([^\]]+)\]\[[^\]]*\]/g, "$1")
    .replace(/``[^`]+``|`[^`]*`/g, "Code")
    .replace(/<(?:https?:[^>]*|\/?[a-z][^>]*)>/gi, " ")
    .replace(/https?:\/\/\S+/g, "Url")
    .replace(/\*\*|__|(?<=\s|^)[*_](?=\S)|(?<=\S)[*_](?=[\s.,;:)]|$)/g, "")
    .replace(/\\([|_*])/g, "$1")

/** Paragraphs, headings, items and cells. Skips fenced and indented code, and HTML comments. */
const markdown = (source, firstLine = 1, kind = "md") => {
  const out = []
  let rows = []
  let fence = null
  const flush = (as = kind) => {
    if (rows.length > 0) out.push(segment(as, rows))
    rows = []
  }
  const hidden = source.replace(/<!--[\s\S]*?-->/g, (text) => text.replace(/[^\n]/g, ""))
  for (const [at, row] of hidden.split("\n").entries()) {
    const line = firstLine + at
    const opening = /^\s*(?:>\s*)?(`{3,}|~{3,})/.exec(row)?.[1]
    if (fence !== null) {
      if (opening?.startsWith(fence)) fence = null
      continue
    }
    const [, heading] = /^\s*#{1,6}\s+(.*)$/.exec(row) ?? []
    const [, item] = /^\s*(?:>\s*)*(?:[-*+]|\d+[.)])\s+(.*)$/.exec(row) ?? []
    const isIndented = /^(?: {4}|\t)/.test(row) && rows.length === 0 && kind === "md"
    if (opening !== undefined || heading !== undefined || item !== undefined || /^\s*(?:\||:::|$)/.test(row))
      flush()
    if (opening !== undefined) fence = opening
    else if (heading !== undefined) {
      rows.push({ line, text: inline(heading) })
      flush("heading")
    } else if (/^\s*\|/.test(row)) {
      const cells = row.replace(/`[^`]*`/g, (text) => text.replaceAll("|", "/")).split(/(?<!\\)\|/)
      out.push(...cells.filter(isPhrase).map((cell) => segment(kind, [{ line, text: inline(cell) }])))
    } else if (item !== undefined) rows.push({ line, text: inline(item) })
    else if (!isIndented && !/^\s*(?:$|:::)/.test(row))
      rows.push({ line, text: inline(row.replace(/^\s*>\s?/, "")) })
  }
  flush()
  return out
}

const isPhrase = (text) => /[a-z] [a-z]/i.test(text)

/** Whether a literal is English: not SQL, code, markup or a command. */
const isProse = (text) => {
  const words = text.match(/[A-Za-z][a-z']+/g) ?? []
  if (words.length < 3 || !isPhrase(text)) return false
  if (
    /\bselect [\w.*, ]+ from\b|^\s*(?:select|insert|update|delete|create|alter|drop|with|begin|commit|pragma|set|lock|vacuum|from|where|and|or|order by|on conflict|returning|values|limit|analyze|attach|listen|notify)\b[\s\S]*(?:\b(?:from|into|set|table|index|where|select)\b|[=;(])/i.test(
      text
    ) &&
    !/[.!?]$/.test(text)
  )
    return false
  if (
    /^\s*(?:function|event|error|constructor|struct|import|export|const|let|var|return|if|for|class)\b.*[({=]/.test(
      text
    )
  )
    return false
  if (/=>|[{}]\s*[;,]|<\/?[a-z]+[ >]|^\s*[./#@]|\$\(|&&|\|\||--[a-z-]+=/.test(text)) return false
  return words.length / text.split(/\s+/).length > 0.55
}

/** Classifies a literal by the code before it. */
const kindOf = (before) => {
  if (/\)\(\s*$/.test(before)) return "test" // it.each(cases)("name", ...)
  if (
    /\.?\blog(?:Error|Warning|Warn|Info|Debug|Trace|Fatal)?\(\s*(?:[^()"'`;]*[?:]\s*)?$|\b(?:logger|log|console)\.\w+\(\s*$/.test(
      before
    )
  )
    return "log"
  if (/\b(?:it|test|describe|suite|scenario)(?:\.\w+)*(?:\([^()]*\))?\(\s*$/.test(before)) return "test"
  return /\bError\(\s*(?:\{\s*(?:message|reason|cause)\s*:\s*)?$|\b(?:fail|die|dieMessage|refuse|refused|invalid|problem|wrong|require|revert|reason|denied|unavailable)\w*\(\s*(?:[\w.]+,\s*)?$|\b(?:message|problem|reason|error|detail|details|remedy|when)\s*[:=]\s*$/i.test(
    before
  )
    ? "error"
    : "text"
}

/** Ranges of the literals of a source, each as the ranges of its parts: a template has one for each text between values. */
const literalsOf = (source, path) => {
  if (path.endsWith(".sol"))
    return [...source.matchAll(/"(?:[^"\\\n]|\\.)*"|(\/\/.*|\/\*[\s\S]*?\*\/)/g)].flatMap(
      ({ 0: text, 1: comment, index }) => (comment === undefined ? [[[index, index + text.length]]] : [])
    )
  const out = []
  const tree = ts.createSourceFile(path, source, ts.ScriptTarget.Latest)
  const visit = (node) => {
    const parts = ts.isTemplateExpression(node)
      ? [node.head, ...node.templateSpans.map(({ literal }) => literal)]
      : ts.isStringLiteral(node) ||
          ts.isNoSubstitutionTemplateLiteral(node) ||
          ts.isRegularExpressionLiteral(node)
        ? [node]
        : []
    if (parts.length > 0) out.push(parts.map((part) => [part.getStart(tree), part.end]))
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return out
}

/** Comments and literals. */
const code = (source, path) => {
  const out = []
  const rest = [...source.matchAll(/[\s\S]/g)].map(([character]) => character)
  const isErrors = /(?:Reasons|Catalogue|Errors?|Failure|Refusal\w*)\.ts$/.test(path)
  const isTest = /\.(?:test|suite|spec)\.|(?:^|\/)tests?\//.test(path)
  const lineAt = (offset) => source.slice(0, offset).split("\n").length
  let previous = { end: 0, kind: "text" }
  for (const parts of literalsOf(source, path)) {
    const [[from], [, end]] = [parts[0], parts.at(-1)]
    for (const [first, last] of parts)
      for (let at = first; at < last; at++) if (rest[at] !== "\n") rest[at] = " "
    if (source[from] === "/") continue
    // Further arguments and parts of a sum have the kind of the first one.
    const isMore = previous.end > 0 && /^\s*[,+]\s*$/.test(source.slice(previous.end, from))
    let kind = isMore ? previous.kind : kindOf(source.slice(Math.max(0, from - 90), from))
    if (kind === "text" && isErrors) kind = "error"
    if (kind === "test" && !isTest) kind = "text"
    previous = { end, kind }
    const text = parts
      .map(([first, last]) => source.slice(first + 1, source[last - 1] === "{" ? last - 2 : last - 1))
      .join("Value")
      .replace(/\\n/g, " ")
      .replace(/\\(.)/g, "$1")
    if (isProse(text))
      out.push(
        segment(kind, [
          { line: lineAt(from), text: text.replace(/`[^`]*`/g, "Code").replace(/\{\w+\}/g, "Value") }
        ])
      )
  }
  for (const { 0: text, index } of rest.join("").matchAll(/\/\*[\s\S]*?\*\/|\/\/.*(?:\n[ \t]*\/\/.*)*/g)) {
    const isDoc = /^\/\*\*|^\/\/\//.test(text)
    const body = text.startsWith("/*")
      ? text.replace(/^\/\*+!?|\*\/$/g, "").replace(/^[ \t]*\* ?/gm, "")
      : text.replace(/^[ \t]*\/\/+[!/]?[ \t]?/gm, "")
    out.push(...commentOf(body, lineAt(index), isDoc ? "doc" : "comment"))
  }
  return out
}

/** Prose of a comment: no directive, rule, table, code or example; each tag begins a segment. */
const commentOf = (body, line, kind) => {
  if (/biome-ignore|@ts-|SPDX|@vite-ignore|Stryker/.test(body) && body.split("\n").length < 3) return []
  let isExample = false
  const rows = body.split("\n").map((row) => {
    const tag = /^\s*@(\w+)/.exec(row)?.[1]
    if (tag !== undefined) isExample = ["example", "see", "custom"].includes(tag)
    if (
      isExample ||
      /^\s*[-=]{3,}|\S {2,}\S.* {3,}\S|[;{}]\s*$|^\s*(?:const|let|return|if|await|import)\b.*[=(;]/.test(row)
    )
      return ""
    return row
      .replace(/^\s*@param\s+[\w.[\]]+\s*-?\s*|^\s*@\w+\s*(?:_\w+ )?/, "\u00b6")
      .replace(/^\s*[\w.]+: (?=[a-z])/, "")
  })
  const out = []
  let from = 0
  for (let to = 1; to <= rows.length; to++)
    if (to === rows.length || rows[to].startsWith("\u00b6")) {
      out.push(...markdown(rows.slice(from, to).join("\n").replace("\u00b6", ""), line + from, kind))
      from = to
    }
  return out.filter(({ text }) => isPhrase(text))
}

const lineOf = ({ starts }, index) => starts.findLast(([start]) => start <= index)?.[1] ?? 1

const sentences = (text) => {
  const out = []
  let from = 0
  for (const { index } of text.matchAll(/(?<!\b(?:e\.g|i\.e|etc|vs|cf|no|v\d+))[.!?](?=\s+[A-Z`(]|$)/gi)) {
    out.push([from, text.slice(from, index + 1)])
    from = index + 1
  }
  return from < text.length ? [...out, [from, text.slice(from)]] : out
}

/** Sentences of more than 40 words, or with more than one semicolon. */
const misshapen = {
  long: (text) => text.split(/\s+/).filter((word) => /[A-Za-z]/.test(word)).length > 40,
  semicolons: (text) => text.split(/;\s/).length > 2 && !/[=(){}'][^;]*;|^Code;/.test(text)
}

const check = (part) => {
  const hits = []
  const taken = []
  for (const [rule, { at, on }] of rules) {
    if (on?.includes(part.kind) === false) continue
    if (Object.hasOwn(misshapen, rule))
      for (const [from, text] of sentences(part.text))
        if (misshapen[rule](text))
          hits.push({ rule, line: lineOf(part, from), words: `${text.trim().slice(0, 60)}...` })
    for (const pattern of at)
      for (const match of part.text.matchAll(pattern)) {
        const words = match[0].replace(/^[.!?;:]\s+/, "")
        const end = match.index + match[0].length
        const from = end - words.length
        // One hit for one stretch of words, by the first rule.
        if (taken.some(([first, last]) => from < last && end > first)) continue
        taken.push([from, end])
        hits.push({ rule, line: lineOf(part, from), words: words.slice(0, 60) })
      }
  }
  return hits
}

/** Whether a hit has an exception in the file. */
const marks = (source) => {
  const excused = new Set()
  for (const [index, row] of source.split("\n").entries()) {
    const [, scope, names] = /prose-ignore-(line|next|file)((?:[ ,]+[a-z-]+)*)/.exec(row) ?? []
    const line = { line: index + 1, next: index + 2, file: "file" }[scope]
    for (const name of names?.trim().split(/[ ,]+/) ?? []) excused.add(`${line} ${name}`)
  }
  return ({ line, rule }) => excused.has(`file ${rule}`) || excused.has(`${line} ${rule}`)
}

const ignored = readFileSync(".prose-ignore", "utf8")
  .split("\n")
  .filter((row) => /^[^#\s]/.test(row))
  .map((glob) => new RegExp(`^${glob.replaceAll(".", "\\.").replaceAll("*", "[^/]*")}$`))

const paths = process.argv.slice(2)
const files = execFileSync(
  "git",
  ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...paths],
  {
    encoding: "utf8",
    maxBuffer: 1 << 28
  }
)
let hits = 0
for (const path of files.split("\0")) {
  const kind = extname(path)
  if (![".md", ".ts", ".mjs", ".sol"].includes(kind) || !existsSync(path)) continue
  if (ignored.some((glob) => glob.test(path))) continue
  const source = readFileSync(path, "utf8")
  const isExcused = marks(source)
  for (const part of kind === ".md" ? markdown(source) : code(source, path))
    for (const hit of check(part)) {
      if (isExcused(hit)) continue
      hits++
      console.log(
        `${path}:${hit.line}: [${part.kind}] ${hit.rule}: "${hit.words}" -> ${rules.get(hit.rule).say}`
      )
    }
}
if (hits > 0) {
  console.log(`${hits} hits`)
  process.exitCode = 1
}
