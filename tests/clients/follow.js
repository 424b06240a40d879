/*
 * follow.js - a client that wants to be told of one file: by resources/subscribe (legacy) and by subscriptions/listen (modern), the same over
 * every transport.
 */
import assert from 'node:assert/strict';
import { ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { until } from './stack.js';

export const file = (conversation, name) => `sallyport://conversation/${conversation}/${name}`;

/* What a client was told: the URIs of updates, and how often the list changed. */
export function record(client, [updated, listChanged]) {
	const told = { uris: [], lists: 0 };
	client.setNotificationHandler(updated, ({ params }) => void told.uris.push(params.uri));
	client.setNotificationHandler(listChanged, () => void told.lists++);
	return told;
}
export const V1 = [ResourceUpdatedNotificationSchema, ResourceListChangedNotificationSchema];
export const V2 = ['notifications/resources/updated', 'notifications/resources/list_changed'];
export const upload = (client, conversationId, filename, content) =>
	client.callTool({ name: 'upload_file', arguments: { conversationId, filename, content: Buffer.from(content).toString('base64') } });
export const run = (client, conversationId, code) => client.callTool({ name: 'run_code', arguments: { conversationId, language: 'bash', code } });


/* Follows one file and is told of it, and of nothing else; until it does not want to know any more. */
export async function followOne({ client, told }, conversation) {
	const wanted = file(conversation, 'wanted.txt');
	await client.subscribeResource({ uri: wanted }); /* it is not there yet */
	await client.subscribeResource({ uri: wanted });
	await upload(client, conversation, 'other.txt', 'a');
	await upload(client, conversation, 'wanted.txt', 'b');
	await until('the upload', () => told.uris.length === 1 && told.lists >= 1);
	await run(client, conversation, 'echo c > wanted.txt; echo c > other.txt');
	await until('the change', () => told.uris.length === 2);
	await run(client, conversation, 'rm wanted.txt');
	await until('the removal', () => told.uris.length === 3);
	assert.deepEqual(told.uris, [wanted, wanted, wanted]);
	await client.unsubscribeResource({ uri: wanted });
	const lists = told.lists;
	await upload(client, conversation, 'wanted.txt', 'd');
	await until('the list', () => told.lists > lists);
	assert.equal(told.uris.length, 3);
}

/* The same by subscriptions/listen; a subscription that was closed is silent. */
export async function listenToOne({ client, told }, conversation) {
	const wanted = file(conversation, 'wanted.txt');
	const subscription = await client.listen({ resourcesListChanged: true, toolsListChanged: true, resourceSubscriptions: [wanted, 'nothing://here'] });
	assert.deepEqual(subscription.honoredFilter, { resourcesListChanged: true, resourceSubscriptions: [wanted] });
	await upload(client, conversation, 'other.txt', 'a');
	await run(client, conversation, 'echo b > wanted.txt');
	await until('the change', () => told.uris.length === 1 && told.lists >= 1);
	assert.deepEqual(told.uris, [wanted]);
	await subscription.close();
	const rest = await client.listen({ resourcesListChanged: true });
	const { lists } = told;
	await upload(client, conversation, 'wanted.txt', 'c');
	await until('the list', () => told.lists > lists);
	assert.deepEqual(told.uris, [wanted]);
	await rest.close();
}
