-- wrk's side of `make bench`: tools/call of run_code with print(1), in turn over a few conversations; the token comes by the environment.
-- BENCH_SERVERS, BENCH_CODE, BENCH_LANGUAGE, BENCH_OUT, BENCH_DISPLAY: with these MCP servers, and this program in the place of print(1), in
-- this language, whose output is this, with this value of "display".
-- Prints median latency in microseconds, requests, and how many did not answer as they must.
local body = [[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"conversationId":"bench-%d",]]
	.. (os.getenv("BENCH_SERVERS") and '"servers":["' .. os.getenv("BENCH_SERVERS") .. '"],' or "")
	.. (os.getenv("BENCH_DISPLAY") and '"display":' .. os.getenv("BENCH_DISPLAY") .. "," or "")
	.. [["language":"]] .. (os.getenv("BENCH_LANGUAGE") or "python") .. [[","code":"]] .. (os.getenv("BENCH_CODE") or "print(1)") .. [["},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",]]
	.. [["io.modelcontextprotocol/clientCapabilities":{}}}}]]
local conversations, turn = 64, 0
local threads = {}
wrong = 0

function setup(thread)
	table.insert(threads, thread)
end

function init()
	wrk.method = "POST"
	wrk.headers["Authorization"] = "Bearer " .. os.getenv("TOKEN")
	wrk.headers["Content-Type"] = "application/json"
	wrk.headers["MCP-Protocol-Version"] = "2026-07-28"
	wrk.headers["Mcp-Method"] = "tools/call"
	wrk.headers["Mcp-Name"] = "run_code"
end

function request()
	turn = (turn + 1) % conversations
	return wrk.format(nil, nil, nil, string.format(body, turn))
end

function response(status, headers, text)
	if status ~= 200 or not text:find('"stdout":"' .. (os.getenv("BENCH_OUT") or "1") .. '\\n"', 1, true) then
		wrong = wrong + 1
		if wrong == 1 then io.stderr:write(text:sub(1, 600), "\n") end
	end
end

function done(summary, latency, requests)
	local bad = summary.errors.connect + summary.errors.read + summary.errors.timeout
	for _, thread in ipairs(threads) do
		bad = bad + thread:get("wrong")
	end
	io.write(string.format("%d %d %d\n", latency:percentile(50), summary.requests, bad))
end
