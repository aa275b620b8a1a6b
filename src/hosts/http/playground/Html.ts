/** The playground's page. Script and style are files of their own, so that the policy allows nothing inline. */
export const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>castellan playground</title>
<link rel="stylesheet" href="/playground/style.css">
<link rel="icon" href="data:,">
<script type="module" src="/playground/script.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>castellan playground</h1>
<p>A wallet that only your passkey can move, step by step, through the same endpoints as every client. Served in development only. <a href="/playground/script.js">The script</a> uses nothing but <a href="/playground/passkeys.js">castellan/passkeys</a>: take from it what you need. <a href="/docs">All endpoints</a>.</p>
</header>
<main id="main">
<noscript><p class="bad">This page does nothing without its script.</p></noscript>
<p id="notice" class="bad" role="alert"></p>

<section aria-labelledby="service-title">
<h2 id="service-title">1. Service</h2>
<p>What <code>castellan dev</code> prints and keeps in <code>.castellan/dev.json</code>. Its link to this page fills everything in.</p>
<form id="service">
<label for="apiKey">API key</label>
<input id="apiKey" type="password" autocomplete="off" spellcheck="false" required>
<label for="rpc">RPC URL of the chain</label>
<input id="rpc" class="mono" type="url" autocomplete="off" spellcheck="false" required>
<label for="settings">Settings</label>
<textarea id="settings" spellcheck="false" required aria-describedby="settings-hint">{}</textarea>
<p id="settings-hint" class="hint">JSON: <code>entryPoint</code>; <code>signer</code>, which pays for the transaction that creates the wallet; and <code>paymaster</code>, if somebody else than the wallet is to pay for its operations.</p>
</form>
</section>

<section aria-labelledby="passkey-title">
<h2 id="passkey-title">2. Passkey</h2>
<p>The private key stays in your authenticator. The service gets the public one.</p>
<form id="passkey">
<label for="name">Name of the passkey</label>
<input id="name" autocomplete="off" value="playground" required>
<div class="actions"><button type="submit">Create a passkey</button></div>
</form>
<dl>
<dt>Public key</dt><dd id="publicKey" class="mono">none yet</dd>
</dl>
</section>

<section aria-labelledby="wallet-title">
<h2 id="wallet-title">3. Wallet</h2>
<p>Custody 5: no key of the service has a say. The address follows from the salt; before its creation it has to hold native tokens, unless a paymaster pays.</p>
<form id="wallet">
<label for="salt">Salt</label>
<input id="salt" autocomplete="off" spellcheck="false" required>
<div class="actions">
<button type="submit" class="second" value="predict">Predict the address</button>
<button type="submit" value="create">Create the wallet</button>
</div>
</form>
<dl>
<dt>Address</dt><dd id="address" class="mono">not predicted yet</dd>
<dt>Deployed</dt><dd id="deployed">unknown</dd>
</dl>
</section>

<section aria-labelledby="transfer-title">
<h2 id="transfer-title">4. Tokens</h2>
<p>Each operation is estimated (<code>/passkeyHash</code>), signed by your passkey over <code>signingHash</code>, and submitted by the service (<code>/executePasskey</code>).</p>
<form id="transfer">
<label for="token">Token contract</label>
<input id="token" class="mono" autocomplete="off" spellcheck="false" required>
<label for="recipient">Recipient</label>
<input id="recipient" class="mono" autocomplete="off" spellcheck="false" required value="0x000000000000000000000000000000000000dEaD">
<label for="amount">Amount, in the token's smallest unit</label>
<input id="amount" inputmode="numeric" autocomplete="off" required value="250" pattern="[0-9]+">
<div class="actions">
<button type="submit" class="second" value="mint" aria-describedby="mint-hint">Mint the amount to the wallet</button>
<button type="submit" value="transfer">Transfer</button>
</div>
<p id="mint-hint" class="hint">The development chain's token mints for everybody.</p>
</form>
<dl>
<dt>Balance of the wallet</dt><dd id="balance">unknown</dd>
</dl>
</section>

<section aria-labelledby="result-title">
<h2 id="result-title">Result</h2>
<div id="result"><p>Nothing has been asked for yet.</p></div>
</section>

<section aria-labelledby="exchange-title">
<h2 id="exchange-title">Requests and answers</h2>
<p>The newest comes first. The API key goes in the header <code>X-API-Key</code>.</p>
<div id="exchange"></div>
</section>
<p id="status" role="status">Ready.</p>
</main>
</body>
</html>
`
