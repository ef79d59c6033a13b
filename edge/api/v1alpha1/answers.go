package v1alpha1

// Answers names the type of each path's answer. It is never sent: the schema is generated from it.
type Answers struct {
	Meta              Meta              `json:"meta"`
	Overview          Overview          `json:"overview"`
	Money             Money             `json:"money"`
	Series            Series            `json:"series"`
	Nodes             NodeList          `json:"nodes"`
	Node              NodeDetail        `json:"nodes/NAME"`
	Pods              PodList           `json:"pods"`
	Pod               PodDetail         `json:"pods/NAMESPACE/NAME"`
	Pending           Pending           `json:"pending"`
	Groups            GroupList         `json:"groups"`
	Group             GroupDetail       `json:"groups/NAME"`
	PodGroups         PodGroupList      `json:"podgroups"`
	PodGroup          PodGroupDetail    `json:"podgroups/NAMESPACE/NAME"`
	Devices           DeviceList        `json:"devices"`
	Decisions         DecisionList      `json:"decisions"`
	Decision          Decision          `json:"decisions/SEQ"`
	Shadow            Shadow            `json:"shadow"`
	WhatIf            WhatIf            `json:"whatif"`
	Outcomes          OutcomeList       `json:"outcomes"`
	StreamedDecisions StreamedDecisions `json:"stream: decisions"`
	Error             Error             `json:"error"`
}
