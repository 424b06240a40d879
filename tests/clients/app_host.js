/*
 * app_host.js - a client that renders apps, in a page: the official bridge (ext-apps) and the official SDK around Sallyport's page. It is
 * bundled for the browser by tests/admin/apps.test.js, which calls `host` there.
 */
import { AppBridge, PostMessageTransport, RESOURCE_MIME_TYPE } from '@modelcontextprotocol/ext-apps/app-bridge';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

/* Calls run_code as a model would, and shows the result by the page that the tool names. */
window.host = async ({ url, token, args, mode, capabilities = { openLinks: {}, serverTools: {}, serverResources: {} } }) => {
	const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } };
	const client = new Client({ name: 'app-host', version: '1' }, { capabilities: { extensions }, versionNegotiation: { mode } });
	await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${token}` } } }));
	const { tools } = await client.listTools();
	const { resourceUri } = tools.find(({ name }) => name === 'run_code')._meta.ui;
	const { contents: [page] } = await client.readResource({ uri: resourceUri });
	const result = await client.callTool({ name: 'run_code', arguments: args });
	const frame = document.createElement('iframe');
	frame.setAttribute('sandbox', 'allow-scripts');
	document.body.replaceChildren(frame);
	const bridge = new AppBridge(client, { name: 'app-host', version: '1' }, capabilities, { hostContext: { theme: 'dark' } });
	bridge.onopenlink = async (asked) => ((window.opened = asked.url), {});
	bridge.onsizechange = ({ height }) => (frame.style.height = `${height}px`);
	const ready = new Promise((resolve) => (bridge.oninitialized = resolve));
	await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
	frame.srcdoc = page.text;
	await ready;
	await bridge.sendToolInput({ arguments: args });
	await bridge.sendToolResult(result);
	return { result, mimeType: page.mimeType, ui: page._meta.ui };
};
