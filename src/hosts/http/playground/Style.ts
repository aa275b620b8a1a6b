/** The style of the playground. Text and background differ by at least 7:1 in both schemes. */
export const style = `:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --soft: #f3f4f6; --line: #6b7480; --link: #0b4a8f; --on-link: #ffffff; --bad: #8c1010; --good: #0b5a2a; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8eaed; --back: #14171b; --soft: #1f242a; --line: #8a94a0; --link: #9cc7ff; --on-link: #10141a; --bad: #ffb3ab; --good: #9fe3b8; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 0 1.5rem 4rem; color: var(--text); background: var(--back); font: 1rem/1.55 system-ui, sans-serif; }
h1, h2, h3 { line-height: 1.25; margin-bottom: .4rem; }
section { margin-top: 1.6rem; padding: .2rem 1.2rem 1.2rem; border: 1px solid var(--line); border-radius: .4rem; }
section > p { margin: .4rem 0 .8rem; }
a { color: var(--link); }
label { display: block; margin: .7rem 0 .2rem; font-weight: 600; }
.hint { margin: .2rem 0 0; font-size: .9rem; }
input, textarea { width: 100%; padding: .45rem .6rem; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: .25rem; font: inherit; }
textarea, .mono, code, pre, td.args { font-family: ui-monospace, monospace; font-size: .9rem; }
textarea { min-height: 12rem; resize: vertical; }
.actions { display: flex; flex-wrap: wrap; gap: .7rem; margin: 1rem 0 .4rem; }
button { padding: .5rem 1.1rem; color: var(--on-link); background: var(--link); border: 1px solid var(--link); border-radius: .25rem; font: inherit; font-weight: 600; cursor: pointer; }
button.second { color: var(--link); background: var(--back); }
button[aria-disabled="true"] { cursor: progress; opacity: .75; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; padding: .5rem 1rem; background: var(--back); }
.skip:focus { left: 0; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .3rem 1rem; margin: .8rem 0 0; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
html { scroll-padding-bottom: 5rem; }
[role="status"] { position: sticky; bottom: 0; margin: 1.6rem 0 0; padding: .7rem 1.2rem; font-weight: 600; background: var(--back); border: 1px solid var(--line); border-radius: .4rem; overflow-wrap: anywhere; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.scroll { overflow-x: auto; margin-top: 1rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border: 1px solid var(--line); }
td.args { min-width: 18rem; overflow-wrap: anywhere; }
tbody th { font-weight: normal; }
thead th { background: var(--soft); }
pre { margin: .4rem 0; padding: .7rem .9rem; max-height: 24rem; overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--soft); border: 1px solid var(--line); }
details { margin: .5rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
@media (max-width: 40rem) { dl { grid-template-columns: minmax(0, 1fr); } dd { margin-bottom: .4rem; } }
`
