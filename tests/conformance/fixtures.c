/* SPDX-License-Identifier: Apache-2.0 */
/* tests/conformance/fixtures.c - the tools, prompts and resources the conformance suite looks for
 *
 * Names, arguments and texts are the suite's (@modelcontextprotocol/conformance). Nothing here writes a
 * byte of the protocol: what a client sees is made by mcp/, as in the program that is shipped.
 */
#include "tests/conformance/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/ask.h"
#include "mcp/call.h"
#include "mcp/complete.h"
#include "mcp/content.h"
#include "mcp/json.h"
#include "mcp/listen.h"

enum { PAUSE_MS = 50, TEXT_MAX = 512 };

/* One red pixel. */
static const unsigned char png[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00,
	0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53, 0xde, 0x00,
	0x00, 0x00, 0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01,
	0x01, 0x00, 0xc9, 0xfe, 0x92, 0xef, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60,
	0x82,
};

/* Four samples of silence. */
static const unsigned char wav[] = {
	'R', 'I', 'F', 'F', 40, 0, 0, 0, 'W', 'A', 'V', 'E', 'f', 'm', 't', ' ', 16, 0, 0, 0, 1, 0, 1, 0,
	0x40, 0x1f, 0, 0, 0x40, 0x1f, 0, 0, 1, 0, 8, 0, 'd', 'a', 't', 'a', 4, 0, 0, 0, 128, 128, 128, 128,
};

static void finish(struct call *c, const char *text)
{
	call_result_begin(c);
	content_text(c, text);
	call_result_end(c, false, "");
}

static const char *text_of(const struct json *object, const char *name)
{
	const char *text = json_text(json_member(object, name));

	return text ? text : "";
}

/* ---- content ---- */

static void simple_text(struct call *c, const struct json *args)
{
	(void)args;
	finish(c, "This is a simple text response for testing.");
}

static void image(struct call *c, const struct json *args)
{
	(void)args;
	call_result_begin(c);
	content_media(c, "image", "image/png", png, sizeof(png));
	call_result_end(c, false, "");
}

static void audio(struct call *c, const struct json *args)
{
	(void)args;
	call_result_begin(c);
	content_media(c, "audio", "audio/wav", wav, sizeof(wav));
	call_result_end(c, false, "");
}

static void embedded(struct call *c, const struct json *args)
{
	(void)args;
	call_result_begin(c);
	content_resource(c, "test://embedded-resource", "text/plain", "This is an embedded resource content.");
	call_result_end(c, false, "");
}

static void mixed(struct call *c, const struct json *args)
{
	(void)args;
	call_result_begin(c);
	content_text(c, "Multiple content types test:");
	content_media(c, "image", "image/png", png, sizeof(png));
	content_resource(c, "test://mixed-content-resource", "application/json",
			 "{\"test\":\"data\",\"value\":123}");
	call_result_end(c, false, "");
}

static void failing(struct call *c, const struct json *args)
{
	(void)args;
	call_refuse(c, "", "This tool intentionally returns an error for testing", "");
}

static void echo(struct call *c, const struct json *args)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text), "region %s", text_of(args, "region"));
	finish(c, text);
}

/* ---- in steps ---- */

struct steps {
	struct loop_timer timer;
	unsigned int done;
	bool logs; /* else progress */
};

static void on_step(struct loop_timer *t);

static void step(struct call *c)
{
	static const char *const texts[] = { "Tool execution started", "Tool processing data",
					     "Tool execution completed" };
	struct steps *s = c->state;

	if (s->logs)
		call_log(c, SEVERITY_INFO, texts[s->done]);
	else
		call_report(c, 50U * s->done, 100);
	if (++s->done < 3)
		(void)loop_timer_set(c->server->loop, &s->timer, PAUSE_MS, on_step, c);
	else
		finish(c, "Done in three steps.");
}

static void on_step(struct loop_timer *t)
{
	step(t->ctx);
}

static void start_steps(struct call *c, bool logs)
{
	struct steps *s = calloc(1, sizeof(*s));

	if (!s) {
		call_refuse(c, "", "no memory", "");
		return;
	}
	s->logs = logs;
	c->state = s;
	step(c);
}

static void with_progress(struct call *c, const struct json *args)
{
	(void)args;
	start_steps(c, false);
}

static void with_logging(struct call *c, const struct json *args)
{
	(void)args;
	start_steps(c, true);
}

static void drop_steps(struct call *c)
{
	struct steps *s = c->state;

	loop_timer_cancel(c->server->loop, &s->timer);
	free(s);
}

/* ---- what the client is asked ---- */

#define OBJECT(properties, required) \
	"{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define FORM(message, properties, required) \
	"{\"message\":\"" message "\",\"requestedSchema\":" OBJECT(properties, required) "}"
#define SAMPLE(text, tokens)                                                                      \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"" text "\"}}]," \
	"\"maxTokens\":" tokens "}"

#define NAME_FORM FORM("What is your name?", "\"name\":{\"type\":\"string\"}", "\"name\"")
#define CONFIRM_FORM FORM("Please confirm", "\"ok\":{\"type\":\"boolean\"}", "\"ok\"")

/* Ask one question. Return: the answer, or NULL and the call waits, or is over. */
static const struct json *ask_one(struct call *c, const char *key, enum ask_kind kind, const char *params,
				  const char *state)
{
	const struct json *answer = ask_answer(c, key);

	if (answer)
		return answer;
	ask_add(c, key, kind, params);
	ask_send(c, state);
	return NULL;
}

/* For texts from a caller: what would need escaping is left out. */
static const char *plain(const char *text, char *ret, size_t size)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++)
		if ((unsigned char)*text >= ' ' && *text != '"' && *text != '\\')
			ret[n++] = *text;
	ret[n] = '\0';
	return ret;
}

static void sampling(struct call *c, const struct json *args)
{
	char words[TEXT_MAX / 2], params[TEXT_MAX];
	const struct json *answer;

	(void)snprintf(params, sizeof(params), SAMPLE("%s", "100"), plain(text_of(args, "prompt"), words, sizeof(words)));
	answer = ask_one(c, "sample", ASK_SAMPLING, params, NULL);
	if (!answer)
		return;
	(void)snprintf(params, sizeof(params), "LLM response: %s", text_of(json_member(answer, "content"), "text"));
	finish(c, params);
}

static void elicitation(struct call *c, const struct json *args)
{
	static const char format[] = FORM("%s", "\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
						"\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}",
					  "\"username\",\"email\"");
	char words[TEXT_MAX / 4], params[TEXT_MAX];
	const struct json *answer;

	(void)snprintf(params, sizeof(params), format, plain(text_of(args, "message"), words, sizeof(words)));
	answer = ask_one(c, "user", ASK_ELICITATION, params, NULL);
	if (!answer)
		return;
	(void)snprintf(params, sizeof(params), "User response: %s, %s, %s", text_of(answer, "action"),
		       text_of(json_member(answer, "content"), "username"),
		       text_of(json_member(answer, "content"), "email"));
	finish(c, params);
}

static void ask_form(struct call *c, const char *form)
{
	const struct json *answer = ask_one(c, "form", ASK_ELICITATION, form, NULL);
	char text[TEXT_MAX];

	if (!answer)
		return;
	(void)snprintf(text, sizeof(text), "Elicitation completed: action=%s", text_of(answer, "action"));
	finish(c, text);
}

static void form_defaults(struct call *c, const struct json *args)
{
	(void)args;
	ask_form(c, FORM("Please review and update the form fields with defaults",
			 "\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},"
			 "\"age\":{\"type\":\"integer\",\"default\":30},"
			 "\"score\":{\"type\":\"number\",\"default\":95.5},"
			 "\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],"
			 "\"default\":\"active\"},"
			 "\"verified\":{\"type\":\"boolean\",\"default\":true}", ""));
}

#define TITLED(value, title) "{\"const\":\"" value "\",\"title\":\"" title "\"}"

static void form_enums(struct call *c, const struct json *args)
{
	(void)args;
	ask_form(c, FORM("Please select options",
			 "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
			 "\"titledSingle\":{\"type\":\"string\",\"oneOf\":["
			 TITLED("value1", "First Option") "," TITLED("value2", "Second Option") "]},"
			 "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\"],"
			 "\"enumNames\":[\"Option One\",\"Option Two\"]},"
			 "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\","
			 "\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
			 "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":["
			 TITLED("value1", "First Choice") "," TITLED("value2", "Second Choice") "]}}", ""));
}

static void ask_name(struct call *c, const struct json *args)
{
	const struct json *answer = ask_one(c, "user_name", ASK_ELICITATION, NAME_FORM, NULL);
	char text[TEXT_MAX];

	(void)args;
	if (!answer)
		return;
	(void)snprintf(text, sizeof(text), "Hello, %s!", text_of(json_member(answer, "content"), "name"));
	finish(c, text);
}

static void ask_capital(struct call *c, const struct json *args)
{
	const struct json *answer = ask_one(c, "capital_question", ASK_SAMPLING,
					    SAMPLE("What is the capital of France?", "100"), NULL);

	(void)args;
	if (answer)
		finish(c, text_of(json_member(answer, "content"), "text"));
}

static void ask_roots(struct call *c, const struct json *args)
{
	const struct json *answer = ask_one(c, "client_roots", ASK_ROOTS, "{}", NULL);
	char text[TEXT_MAX];

	(void)args;
	if (!answer)
		return;
	(void)snprintf(text, sizeof(text), "First root: %s", text_of(json_item(json_member(answer, "roots"), 0), "uri"));
	finish(c, text);
}

/* An answer counts only with the state that went out with its question. */
static void ask_with_state(struct call *c, const struct json *args)
{
	bool known = ask_state(c) && !strcmp(ask_state(c), "asked");
	const struct json *answer = known ? ask_answer(c, "confirm") : NULL;

	(void)args;
	if (answer) {
		finish(c, "state-ok");
		return;
	}
	ask_add(c, "confirm", ASK_ELICITATION, CONFIRM_FORM);
	ask_send(c, "asked");
}

static void ask_everything(struct call *c, const struct json *args)
{
	(void)args;
	if (ask_answer(c, "user_name") && ask_answer(c, "greeting") && ask_answer(c, "client_roots")) {
		finish(c, "Everything was answered.");
		return;
	}
	ask_add(c, "user_name", ASK_ELICITATION, NAME_FORM);
	ask_add(c, "greeting", ASK_SAMPLING, SAMPLE("Generate a greeting", "50"));
	ask_add(c, "client_roots", ASK_ROOTS, "{}");
	ask_send(c, "everything");
}

static void ask_possible(struct call *c, const struct json *args)
{
	(void)args;
	if (ask_answer(c, "user_name") || ask_answer(c, "greeting")) {
		finish(c, "What could be asked was answered.");
		return;
	}
	ask_add(c, "user_name", ASK_ELICITATION, NAME_FORM);
	ask_add(c, "greeting", ASK_SAMPLING, SAMPLE("Generate a greeting", "50"));
	ask_send(c, NULL);
}

/* Name, then colour; the name travels in the state. */
static void ask_in_rounds(struct call *c, const struct json *args)
{
	const char *name = ask_state(c) ? ask_state(c) : "";
	char text[TEXT_MAX];

	(void)args;
	if (*name && ask_answer(c, "step2")) {
		(void)snprintf(text, sizeof(text), "%s likes %s", name,
			       text_of(json_member(ask_answer(c, "step2"), "content"), "color"));
		finish(c, text);
		return;
	}
	if (!ask_answer(c, "step1")) {
		ask_add(c, "step1", ASK_ELICITATION,
			FORM("Step 1: What is your name?", "\"name\":{\"type\":\"string\"}", "\"name\""));
		ask_send(c, "");
		return;
	}
	(void)snprintf(text, sizeof(text), "%s", text_of(json_member(ask_answer(c, "step1"), "content"), "name"));
	ask_add(c, "step2", ASK_ELICITATION,
		FORM("Step 2: What is your favorite color?", "\"color\":{\"type\":\"string\"}", "\"color\""));
	ask_send(c, text);
}

/* ---- changes ---- */

static bool more_tools, more_prompts;

static void change_tools(struct call *c, const struct json *args)
{
	(void)args;
	more_tools = !more_tools;
	listen_changed(c->server, LIST_TOOLS);
	finish(c, "The list of tools has changed.");
}

static void change_prompts(struct call *c, const struct json *args)
{
	(void)args;
	more_prompts = !more_prompts;
	listen_changed(c->server, LIST_PROMPTS);
	finish(c, "The list of prompts has changed.");
}

static void change_resource(struct call *c, const struct json *args)
{
	(void)args;
	listen_updated(c->server, "test://watched-resource");
	finish(c, "The watched resource has changed.");
}

/* ---- tools ---- */

#define TOOL(id, words, fn, ...) \
	static const struct tool tool_##id = { .name = #id, .title = #id, .description = words, .start = fn, __VA_ARGS__ }

#define TEXT_PARAMETER(id, words) { .name = id, .type = "string", .description = words, .required = true }

TOOL(test_simple_text, "Returns a text", simple_text);
TOOL(test_image_content, "Returns a picture", image);
TOOL(test_audio_content, "Returns a sound", audio);
TOOL(test_embedded_resource, "Returns a resource", embedded);
TOOL(test_multiple_content_types, "Returns a text, a picture and a resource", mixed);
TOOL(test_error_handling, "Fails", failing);
TOOL(test_tool_with_progress, "Reports progress", with_progress, .drop = drop_steps);
TOOL(test_tool_with_logging, "Logs", with_logging, .drop = drop_steps);
TOOL(test_logging_tool, "Logs, if the request says so", with_logging, .drop = drop_steps);
TOOL(test_sampling, "Asks the client's model", sampling, .asks = true,
     .parameters = { TEXT_PARAMETER("prompt", "What to ask") });
TOOL(test_elicitation, "Asks the client's person", elicitation, .asks = true,
     .parameters = { TEXT_PARAMETER("message", "What to ask") });
TOOL(test_elicitation_sep1034_defaults, "Asks with defaults", form_defaults, .asks = true);
TOOL(test_elicitation_sep1330_enums, "Asks to choose", form_enums, .asks = true);
TOOL(test_streaming_elicitation, "Asks the client's person", ask_name, .asks = true);
TOOL(test_missing_capability, "Needs sampling", simple_text, .needs = CAP_SAMPLING);
TOOL(test_x_mcp_header, "Has a parameter that is also a header", echo,
     .parameters = { { .name = "region", .type = "string", .description = "Any word", .header = "Region" },
		     { .name = "count", .type = "integer", .description = "Any number", .header = "Count" } });
TOOL(test_input_required_result_elicitation, "Asks for a name", ask_name, .asks = true);
TOOL(test_input_required_result_sampling, "Asks for a capital", ask_capital, .asks = true);
TOOL(test_input_required_result_list_roots, "Asks for the roots", ask_roots, .asks = true);
TOOL(test_input_required_result_request_state, "Asks, with state", ask_with_state, .asks = true);
TOOL(test_input_required_result_tampered_state, "Asks, with state", ask_with_state, .asks = true);
TOOL(test_input_required_result_multiple_inputs, "Asks three things", ask_everything, .asks = true);
TOOL(test_input_required_result_multi_round, "Asks twice", ask_in_rounds, .asks = true);
TOOL(test_input_required_result_capabilities, "Asks what it can", ask_possible, .asks = true);
TOOL(test_trigger_tool_change, "Changes the list of tools", change_tools);
TOOL(test_trigger_prompt_change, "Changes the list of prompts", change_prompts);
TOOL(test_trigger_resource_change, "Changes the watched resource", change_resource);
TOOL(test_added_tool, "Is there after every other change", simple_text);
TOOL(json_schema_2020_12_tool, "Has the keywords of JSON Schema 2020-12", simple_text,
     .schema = "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","
	       "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"
	       "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},"
	       "\"properties\":{\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"
	       "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"
	       "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"
	       "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"
	       "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},\"required\":[\"contactMethod\"]},"
	       "\"then\":{\"required\":[\"phone\"]},\"else\":{\"required\":[\"email\"]},"
	       "\"additionalProperties\":false}");

static const struct tool *const tools[] = {
	&tool_test_simple_text, &tool_test_image_content, &tool_test_audio_content, &tool_test_embedded_resource,
	&tool_test_multiple_content_types, &tool_test_error_handling, &tool_test_tool_with_progress,
	&tool_test_tool_with_logging, &tool_test_logging_tool, &tool_test_sampling, &tool_test_elicitation,
	&tool_test_elicitation_sep1034_defaults, &tool_test_elicitation_sep1330_enums,
	&tool_test_streaming_elicitation, &tool_test_missing_capability, &tool_test_x_mcp_header,
	&tool_test_input_required_result_elicitation, &tool_test_input_required_result_sampling,
	&tool_test_input_required_result_list_roots, &tool_test_input_required_result_request_state,
	&tool_test_input_required_result_tampered_state, &tool_test_input_required_result_multiple_inputs,
	&tool_test_input_required_result_multi_round, &tool_test_input_required_result_capabilities,
	&tool_test_trigger_tool_change, &tool_test_trigger_prompt_change, &tool_test_trigger_resource_change,
	&tool_test_added_tool, &tool_json_schema_2020_12_tool, NULL,
};

/* ---- prompts ---- */

static void prompt_simple(struct call *c, const struct json *args)
{
	(void)args;
	finish(c, "This is a simple prompt for testing.");
}

static void prompt_arguments(struct call *c, const struct json *args)
{
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text), "Prompt with arguments: arg1='%s', arg2='%s'", text_of(args, "arg1"),
		       text_of(args, "arg2"));
	finish(c, text);
}

static void prompt_resource(struct call *c, const struct json *args)
{
	call_result_begin(c);
	content_resource(c, text_of(args, "resourceUri"), "text/plain", "Embedded resource content for testing.");
	content_text(c, "Please process the embedded resource above.");
	call_result_end(c, false, "");
}

static void prompt_image(struct call *c, const struct json *args)
{
	(void)args;
	call_result_begin(c);
	content_media(c, "image", "image/png", png, sizeof(png));
	content_text(c, "Please analyze the image above.");
	call_result_end(c, false, "");
}

static void prompt_asking(struct call *c, const struct json *args)
{
	const struct json *answer = ask_one(c, "user_context", ASK_ELICITATION,
					    FORM("What context should the prompt use?",
						 "\"context\":{\"type\":\"string\"}", "\"context\""), NULL);

	(void)args;
	if (answer)
		finish(c, text_of(json_member(answer, "content"), "context"));
}

static void complete_word(struct completion *to, const char *argument, const char *typed)
{
	static const char *const words[] = { "paris", "park", "party", "testing" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(argument, "arg1") && !strncmp(words[i], typed, strlen(typed)))
			complete_add(to, words[i]);
}

static const struct prompt
	simple_prompt = { .as = { .name = "test_simple_prompt", .description = "One message",
				  .start = prompt_simple } },
	arguments_prompt = { .as = { .name = "test_prompt_with_arguments", .description = "A message with two words in it",
				     .start = prompt_arguments,
				     .parameters = { TEXT_PARAMETER("arg1", "The first word"),
						     TEXT_PARAMETER("arg2", "The second word") } },
			     .complete = complete_word },
	resource_prompt = { .as = { .name = "test_prompt_with_embedded_resource", .description = "With a resource",
				    .start = prompt_resource,
				    .parameters = { TEXT_PARAMETER("resourceUri", "Of the resource") } } },
	image_prompt = { .as = { .name = "test_prompt_with_image", .description = "With a picture",
				 .start = prompt_image } },
	asking_prompt = { .as = { .name = "test_input_required_result_prompt", .description = "Asks for its context",
				  .start = prompt_asking, .asks = true } },
	added_prompt = { .as = { .name = "test_added_prompt", .description = "Is there after every other change",
				 .start = prompt_simple } };

static const struct prompt *const prompts[] = { &simple_prompt, &arguments_prompt, &resource_prompt, &image_prompt,
						&asking_prompt, &added_prompt, NULL };

/* ---- resources ---- */

static void read_text(struct call *c, const struct json *args)
{
	call_result_begin(c);
	content_resource(c, text_of(args, "uri"), "text/plain", "This is the content of the static text resource.");
	call_result_end(c, false, "");
}

static void read_binary(struct call *c, const struct json *args)
{
	call_result_begin(c);
	content_blob(c, text_of(args, "uri"), "image/png", png, sizeof(png));
	call_result_end(c, false, "");
}

static void read_template(struct call *c, const struct json *args);

static const struct resource
	text_resource = { .as = { .name = "static-text", .description = "A text", .start = read_text },
			  .uri = "test://static-text", .mime = "text/plain" },
	binary_resource = { .as = { .name = "static-binary", .description = "A picture", .start = read_binary },
			    .uri = "test://static-binary", .mime = "image/png" },
	watched_resource = { .as = { .name = "watched-resource", .description = "A text that changes",
				     .start = read_text },
			     .uri = "test://watched-resource", .mime = "text/plain" },
	template_resource = { .as = { .name = "template", .description = "Data of an id", .start = read_template },
			      .uri = "test://template/{id}/data", .mime = "application/json" };

static void read_template(struct call *c, const struct json *args)
{
	const char *uri = text_of(args, "uri"), *id;
	char words[TEXT_MAX / 4], word[TEXT_MAX / 4], text[TEXT_MAX];
	size_t len = 0;

	id = resource_variable(&template_resource, uri, &len);
	(void)snprintf(words, sizeof(words), "%.*s", (int)len, id ? id : "");
	plain(words, word, sizeof(word));
	(void)snprintf(text, sizeof(text), "{\"id\":\"%s\",\"templateTest\":true,\"data\":\"Data for ID: %s\"}", word, word);
	call_result_begin(c);
	content_resource(c, uri, "application/json", text);
	call_result_end(c, false, "");
}

static const struct resource *const resources[] = { &text_resource, &binary_resource, &watched_resource,
						    &template_resource, NULL };

/* ---- the registry ---- */

static bool is_offered(const struct tool *t, const struct api_hello *h)
{
	(void)h;
	if (t == &tool_test_added_tool)
		return more_tools;
	return t != &added_prompt.as || more_prompts;
}

const struct registry fixtures = {
	.tools = tools,
	.prompts = prompts,
	.resources = resources,
	.is_offered = is_offered,
	.instructions = "Fixtures of the conformance suite.",
	.logs = true,
	.changes = true,
};
