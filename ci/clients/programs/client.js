// usage: node client.js PORT CA VERSION FRESH REUSED
//
// FRESH requests by agents of their own, then one request, and REUSED more by the same agent, which keeps sessions.
'use strict'
const https = require('https'), fs = require('fs')
const [port, ca, version, fresh, reused] = process.argv.slice(2)

const agent = () => new https.Agent({
  keepAlive: false, ca: fs.readFileSync(ca), minVersion: 'TLSv' + version, maxVersion: 'TLSv' + version,
})

function get(agent) {
  return new Promise((resolve, reject) => {
    let reused
    https.get({host: 'localhost', family: 4, port, path: '/', agent}, response => {
      reused = response.socket.isSessionReused()
      let body = ''
      response.on('data', d => { body += d })
      response.on('end', () => {
        if (response.statusCode !== 200 || body !== 'ok\n') reject(new Error(`${response.statusCode} ${body}`))
      })
    }).on('close', () => resolve(reused)) // the connection has ended, so its tickets are there
      .on('error', reject)
  })
}

async function main() {
  const start = performance.now()
  for (let i = 0; i < +fresh; i++) await get(agent())
  const between = performance.now(), one = agent()
  await get(one)
  const again = performance.now()
  let resumed = 0
  for (let i = 0; i < +reused; i++) if (await get(one)) resumed++
  console.log(`seconds ${(between - start) / 1e3} ${(performance.now() - again) / 1e3} resumed ${resumed}`)
}

main().catch(e => { console.error(e); process.exit(1) })
